// SPDX-License-Identifier: BSD-3-Clause
// From the arguments of a collective to a Call, and to which way it goes.
#pragma once

#include "mpi/calls/call.hpp"
#include "mpi/lanes/lane.hpp"

#include <cstdint>

namespace offpath::mpi {

// A row of native/collectives.def.
struct Offloadable : Collective {
  // Fills the call from its arguments and asks the policy once it knows the size. False: the call is native, because of
  // what all ranks know alike, or because the arguments are wrong, which the native library then says. Inside. May
  // throw bad_alloc.
  bool (*describe)(Call& call, const Lane& lane);
};

// Asks the policy; of one that is used many times whether the service may ever do it. `bytes`: as it wants them;
// pairwise: whether any block could go to the service, whatever its size. True: the service, or not decided yet.
bool choose(Call& call, const Lane& lane, uint64_t bytes);
// Pairwise, with all blocks added: asks the policy for each.
void divide(Call& call, const Lane& lane);

// How the collectives that move data are described. describe_gather and the next two serve the v and w forms as well.
bool describe_barrier(Call& call, const Lane& lane);
bool describe_bcast(Call& call, const Lane& lane);
bool describe_gather(Call& call, const Lane& lane);
bool describe_scatter(Call& call, const Lane& lane);
bool describe_allgather(Call& call, const Lane& lane);
bool describe_alltoall(Call& call, const Lane& lane);
bool describe_neighbor_allgather(Call& call, const Lane& lane);
bool describe_neighbor_alltoall(Call& call, const Lane& lane);
// And those that combine it.
bool describe_reduction(Call& call, const Lane& lane);
bool describe_reduce(Call& call, const Lane& lane);
bool describe_reduce_scatter(Call& call, const Lane& lane);
bool describe_reduce_scatter_block(Call& call, const Lane& lane);

}  // namespace offpath::mpi
