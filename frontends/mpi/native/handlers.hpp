// SPDX-License-Identifier: BSD-3-Clause
// The handlers behind the doorway: one per line of mpi_functions.def, with the prototype of the MPI function.
#pragma once

#include "mpi/native/native.hpp"

namespace offpath::mpi::handlers {

#define OFFPATH_MPI_FUNCTION(name, waits, seen) extern decltype(MPI_##name) name;
#define OFFPATH_MPI_COLLECTIVE(name, waits, seen) extern const decltype(Native::name) name;
#define OFFPATH_MPI_REQUEST(name, waits, seen) extern const decltype(Native::name) name;
#define OFFPATH_MPI_REMOTE(name, waits, seen) extern const decltype(Native::name) name;
#define OFFPATH_MPI_EXTENSION(name, waits, seen) extern decltype(MPIX_##name) name;
#define OFFPATH_MPI_OBSERVED(name, waits, seen)
#define OFFPATH_MPI_PLAIN(name, waits, seen)
#include <offpath/words/mpi_functions.def>

}  // namespace offpath::mpi::handlers
