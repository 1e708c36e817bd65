// SPDX-License-Identifier: BSD-3-Clause
// The handlers behind the doorway: one per line of functions.def, with the prototype of the MPI function.
#pragma once

#include "mpi/native/native.hpp"

namespace offpath::mpi::handlers {

#define OFFPATH_MPI_FUNCTION(name) extern decltype(MPI_##name) name;
#define OFFPATH_MPI_COLLECTIVE(name) extern const decltype(Native::name) name;
#define OFFPATH_MPI_REMOTE(name) extern const decltype(Native::name) name;
#define OFFPATH_MPI_OBSERVED(name)
#define OFFPATH_MPI_PLAIN(name)
#include "mpi/functions/functions.def"

}  // namespace offpath::mpi::handlers
