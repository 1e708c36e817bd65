// SPDX-License-Identifier: BSD-3-Clause
// The functions that complete requests, for whatever stands behind these (mpi/lanes/requested.hpp).
#pragma once

namespace offpath::mpi {

// Requests of the library's that the application has freed while they were under way: moves them on. True: none is left
// that will end by itself, as a receive need not.
bool finish_freed();

}  // namespace offpath::mpi
