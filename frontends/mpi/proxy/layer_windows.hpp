// SPDX-License-Identifier: BSD-3-Clause
// The part of the layer that is about windows.
#pragma once

#include "mpi/proxy/upcall.hpp"

#include <mpi.h>

namespace offpath::mpi::regions {

// What a host's info object says of REMOTE_DEST_HETERO.
Crossing crossing_of(MPI_Info info);
// Whether REMOTE_DEST_HETERO is all it says. Native MPI then need not hear of it: its set_info is collective (with
// MPICH a barrier), but the key is for the ranks that cross over.
bool says_only_crossing(MPI_Info info);

void install_windows(void** handlers);

}  // namespace offpath::mpi::regions
