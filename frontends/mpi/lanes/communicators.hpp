// SPDX-License-Identifier: BSD-3-Clause
// Lanes follow communicators: a constructor's communicator gets one, its attribute's delete callback takes it away.
#pragma once

#include "mpi/lanes/lane.hpp"

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace offpath::mpi {

// Once the job has begun: makes the attribute by which lanes hear of their communicators' end. MPI error code. Inside. May throw bad_alloc.
int open_communicators();
// Lets go of all lanes; everything is drained. Inside.
void forget_communicators();
// After that: no attribute any more. Inside.
void close_communicators();

// Makes a lane for a new communicator, if anything could ever be offloaded on it and all its ranks are able to.
// Collective over `comm`; the answer is the same on all its ranks. Not Inside.
// `preference`: as all ranks have agreed. `compress`: this rank's own (ServiceTeam).
void adopt_communicator(MPI_Comm comm, Preference preference = Preference::automatic, const std::string& compress = {});

// Ranks in MPI_COMM_WORLD of the members, `size`; empty if any is from another world. May throw bad_alloc.
std::vector<int> world_ranks(MPI_Comm comm, int size);

// All members are of this world; the same on all of them. Needs no memory. Inside.
bool is_of_this_world(MPI_Comm comm);

// Nodes that the ranks of `comm` live on; 0: nothing is ever offloaded there (one rank, an intercommunicator, ranks of
// another world). The same on all its ranks. Needs no memory.
uint32_t count_nodes(MPI_Comm comm);
// By rank; empty where there are none to count. May throw bad_alloc.
std::vector<uint32_t> nodes_of(MPI_Comm comm);

}  // namespace offpath::mpi
