// SPDX-License-Identifier: BSD-3-Clause
// Lanes follow communicators: a constructor's communicator gets one, its attribute's delete callback takes it away.
#pragma once

#include "mpi/lanes/lane.hpp"

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <optional>
#include <vector>

namespace offpath::mpi {

// Makes the attribute by which lanes hear of their communicators' end. MPI error code. Inside.
int open_communicators();
// Lets go of all lanes; everything is drained. Inside.
void forget_communicators();
// After that: no attribute any more. Inside.
void close_communicators();

// Makes a lane for a new communicator, if anything could ever be offloaded on it and all its ranks are able to.
// Collective over `comm`; the answer is the same on all its ranks. Not Inside.
// `preference`: as all ranks have agreed. `compress`: this rank's own (ServiceTeam).
void adopt_communicator(MPI_Comm comm, Preference preference = Preference::automatic, const std::string& compress = {});

// Nothing: a rank is not `able`; the answer is the same on all ranks. Collective over `comm`. May throw bad_alloc.
std::optional<Assembly> assemble(MPI_Comm comm, bool able);

// Nodes that the ranks of `comm` live on; 0: nothing is ever offloaded there (one rank, an intercommunicator, ranks of
// another world). The same on all its ranks.
uint32_t count_nodes(MPI_Comm comm);
// By rank; empty where there are none to count.
std::vector<uint32_t> nodes_of(MPI_Comm comm);

// A lane for `comm`, which is the one in `cell`; `able`: this rank has no reason against it. nullptr: a rank has, and
// all get none. `compress` as above. Collective over `comm`. May throw bad_alloc.
std::unique_ptr<Lane> make_lane(MPI_Comm comm, CommCell cell, bool able, Preference preference,
                                const std::string& compress);

}  // namespace offpath::mpi
