// SPDX-License-Identifier: BSD-3-Clause
// The handlers behind the doorway: one per line of functions.def, with the prototype of the MPI function.
#pragma once

#include <mpi.h>

namespace offpath::mpi::handlers {

#define OFFPATH_MPI_FUNCTION(name) extern decltype(MPI_##name) name;
#include "functions.def"
#undef OFFPATH_MPI_FUNCTION

}  // namespace offpath::mpi::handlers
