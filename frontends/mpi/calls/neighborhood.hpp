// SPDX-License-Identifier: BSD-3-Clause
// Who the neighbours of this rank are on a communicator with a topology, in MPI's order, and which of several edges
// between the same two ranks meet.
//
// Threads: any; objects are constant.
#pragma once

#include "policy/policy.hpp"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace offpath::mpi {

struct Neighbor {
  int rank;        // or MPI_PROC_NULL
  uint32_t nth;    // of the edges to (from) that rank, from 0
  uint32_t edges;  // how many there are
};

class Neighborhood {
 public:
  // nullptr: the communicator has no topology. Local. May throw bad_alloc. Inside.
  static std::unique_ptr<Neighborhood> read(MPI_Comm comm);

  const std::vector<Neighbor>& sources() const { return sources_; }
  const std::vector<Neighbor>& destinations() const { return destinations_; }
  // Which of the sender's edges to this rank ends at `source`. MPI says it for few cases only and the libraries differ,
  // by function: it is what the loaded library was seen to do.
  uint32_t arriving(policy::Collective collective, const Neighbor& source) const;

  // The same topology on another communicator of the same ranks, which is freed. MPI_COMM_NULL: it failed. Collective; needs no memory.
  MPI_Comm move_to(MPI_Comm plain) const;

 private:
  // Alltoall, alltoallv, alltoallw: does the last edge of the receiver meet the sender's first?
  using Reversed = std::array<bool, 3>;
  static Reversed learn(int topology);
  static bool last_meets_first(MPI_Comm self, size_t function);

  int topology_ = MPI_UNDEFINED;
  std::vector<int> sizes_;    // cartesian: of the dimensions; graph: index
  std::vector<int> details_;  // cartesian: periodic; graph: edges
  std::vector<Neighbor> sources_;
  std::vector<Neighbor> destinations_;
  struct {
    std::vector<int> sources, destinations, weights;
  } edges_;  // distributed graph
  Reversed reversed_{};
};

}  // namespace offpath::mpi
