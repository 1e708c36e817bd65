// SPDX-License-Identifier: BSD-3-Clause
// Teams follow communicators: a constructor's communicator gets one, its attribute's delete callback takes it away.
#pragma once

#include <mpi.h>

namespace offpath::mpi {

// Makes a team for a new communicator, if anything could ever be offloaded on it and all its ranks are able to.
// Collective over `comm`; the answer is the same on all its ranks. Not Inside.
void adopt_communicator(MPI_Comm comm);

// Attribute callbacks: a duplicate does not inherit the team; a freed communicator forgets it.
int keep_attribute_back(MPI_Comm comm, int keyval, void* extra, void* value, void* copy, int* flag);
int forget_communicator(MPI_Comm comm, int keyval, void* value, void* extra);

}  // namespace offpath::mpi
