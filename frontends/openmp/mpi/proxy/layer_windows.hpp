// SPDX-License-Identifier: BSD-3-Clause
// The part of the layer that is about windows.
#pragma once

#include "proxy/upcall.hpp"

#include <mpi.h>

namespace offpath::mpi::regions {

// What a host's info object says of REMOTE_DEST_HETERO.
Crossing crossing_of(MPI_Info info);

void install_windows(void** handlers);

}  // namespace offpath::mpi::regions
