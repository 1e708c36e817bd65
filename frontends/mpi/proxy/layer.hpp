// SPDX-License-Identifier: BSD-3-Clause
// The layer in front of the back end's handlers, there only in processes with an OpenMP target plugin: MPI_Init with
// the thread level that regions' calls need, the other side's context for every communicator, messages and windows with
// REMOTE_DEST_HETERO. A handler of the layer does its part and calls the one behind it.
#pragma once

#include "mpi/native/native.hpp"

namespace offpath::mpi::regions {

// Whether this process has a plugin for target regions. They are opened before main.
bool have_targets();

// Puts the layer's handlers into the table, of OFFPATH_FUNCTION_COUNT entries.
void install(void** handlers);

}  // namespace offpath::mpi::regions
