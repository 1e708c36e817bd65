// SPDX-License-Identifier: BSD-3-Clause
// The line of OFFPATH_STATS_FILE.
#pragma once

namespace offpath::mpi {

// Each rank's line, by the one that can keep them. Collective. Inside.
void write_statistics();

}  // namespace offpath::mpi
