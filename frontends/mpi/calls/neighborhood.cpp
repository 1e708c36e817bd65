// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/calls/neighborhood.hpp"

#include "mpi/native/native.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace offpath::mpi {
namespace {

std::vector<Neighbor> count_edges(const std::vector<int>& ranks) {
  std::map<int, uint32_t> edges;
  std::vector<Neighbor> neighbors;
  for (const int rank : ranks) neighbors.push_back({rank, edges[rank]++, 0});
  for (Neighbor& neighbor : neighbors) neighbor.edges = edges[neighbor.rank];
  return neighbors;
}

std::vector<int> cartesian_neighbors(MPI_Comm comm, int dimensions) {
  std::vector<int> ranks;
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
    native.Cart_shift(comm, dimension, 1, &before, &after);
    ranks.push_back(before);
    ranks.push_back(after);
  }
  return ranks;
}

std::vector<int> graph_neighbors(MPI_Comm comm) {
  int rank = 0, count = 0;
  native.Comm_rank(comm, &rank);
  native.Graph_neighbors_count(comm, rank, &count);
  std::vector<int> ranks(static_cast<size_t>(count) + 1);
  native.Graph_neighbors(comm, rank, count, ranks.data());
  ranks.pop_back();
  return ranks;
}

// Never MPI_UNWEIGHTED, a variable of MPICH that we are not linked to. One more than needed, so that data() is real.
std::vector<int> weights_for(size_t count) { return std::vector<int>(count + 1, 1); }

}  // namespace

std::unique_ptr<Neighborhood> Neighborhood::read(MPI_Comm comm) {
  auto made = std::make_unique<Neighborhood>();
  if (native.Topo_test(comm, &made->topology_) != MPI_SUCCESS || made->topology_ == MPI_UNDEFINED) return nullptr;
  if (made->topology_ == MPI_CART) {
    int dimensions = 0;
    native.Cartdim_get(comm, &dimensions);
    made->sizes_.resize(static_cast<size_t>(dimensions) + 1);
    made->details_.resize(static_cast<size_t>(dimensions) + 1);
    std::vector<int> coordinates(static_cast<size_t>(dimensions) + 1);
    native.Cart_get(comm, dimensions, made->sizes_.data(), made->details_.data(), coordinates.data());
    made->sources_ = made->destinations_ = count_edges(cartesian_neighbors(comm, dimensions));
  } else if (made->topology_ == MPI_GRAPH) {
    int nodes = 0, edges = 0;
    native.Graphdims_get(comm, &nodes, &edges);
    made->sizes_.resize(static_cast<size_t>(nodes) + 1);
    made->details_.resize(static_cast<size_t>(edges) + 1);
    native.Graph_get(comm, nodes, edges, made->sizes_.data(), made->details_.data());
    made->sources_ = made->destinations_ = count_edges(graph_neighbors(comm));
  } else {
    int in = 0, out = 0, weighted = 0;
    native.Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    std::vector<int> sources(static_cast<size_t>(in) + 1), destinations(static_cast<size_t>(out) + 1);
    std::vector<int> in_weights = weights_for(sources.size()), out_weights = weights_for(destinations.size());
    native.Dist_graph_neighbors(comm, in, sources.data(), in_weights.data(), out, destinations.data(),
                                out_weights.data());
    sources.pop_back();
    destinations.pop_back();
    made->sources_ = count_edges(sources);
    made->destinations_ = count_edges(destinations);
    made->edges_.weights = weights_for(std::max(sources.size(), destinations.size()));
    sources.push_back(0);
    destinations.push_back(0);
    made->edges_.sources = std::move(sources);
    made->edges_.destinations = std::move(destinations);
  }
  made->reversed_ = learn(made->topology_);
  return made;
}

MPI_Comm Neighborhood::move_to(MPI_Comm plain) const {
  MPI_Comm made = MPI_COMM_NULL;
  int code = MPI_ERR_OTHER;
  if (topology_ == MPI_CART) {
    code = native.Cart_create(plain, static_cast<int>(sizes_.size() - 1), sizes_.data(), details_.data(), 0, &made);
  } else if (topology_ == MPI_GRAPH) {
    code = native.Graph_create(plain, static_cast<int>(sizes_.size() - 1), sizes_.data(), details_.data(), 0, &made);
  } else {
    code =
        native.Dist_graph_create_adjacent(plain, static_cast<int>(sources_.size()), edges_.sources.data(),
                                          edges_.weights.data(), static_cast<int>(destinations_.size()),
                                          edges_.destinations.data(), edges_.weights.data(), MPI_INFO_NULL, 0, &made);
  }
  native.Comm_free(&plain);
  return code == MPI_SUCCESS ? made : MPI_COMM_NULL;
}

uint32_t Neighborhood::arriving(policy::Collective collective, const Neighbor& source) const {
  const auto function = static_cast<size_t>(collective) - static_cast<size_t>(policy::Collective::ineighbor_alltoall);
  // The blocks of an allgather are all the same.
  const bool reversed = collective >= policy::Collective::ineighbor_alltoall && reversed_[function];
  return reversed ? source.edges - 1 - source.nth : source.nth;
}

bool Neighborhood::last_meets_first(MPI_Comm self, size_t function) {
  const int send[2] = {1, 2};
  int recv[2] = {0, 0};
  const int ones[2] = {1, 1};
  const int displs[2] = {0, 1};
  const MPI_Aint displs_bytes[2] = {0, sizeof(int)};
  const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  MPI_Request request = MPI_REQUEST_NULL;
  if (function == 0) native.Ineighbor_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, self, &request);
  if (function == 1)
    native.Ineighbor_alltoallv(send, ones, displs, MPI_INT, recv, ones, displs, MPI_INT, self, &request);
  if (function == 2)
    native.Ineighbor_alltoallw(send, ones, displs_bytes, types, recv, ones, displs_bytes, types, self, &request);
  native.Wait(&request, MPI_STATUS_IGNORE);
  return recv[1] == send[0];
}

// Asks the library on a communicator of this rank alone: two edges from itself to itself.
Neighborhood::Reversed Neighborhood::learn(int topology) {
  static std::mutex mutex;
  static std::map<int, Reversed> learnt;
  std::lock_guard lock(mutex);
  if (const auto known = learnt.find(topology); known != learnt.end()) return known->second;
  const int one = 1, two = 2, own[2] = {0, 0}, weights[2] = {1, 1};
  MPI_Comm self = MPI_COMM_NULL;
  if (topology == MPI_CART) native.Cart_create(MPI_COMM_SELF, 1, &one, &one, 0, &self);
  if (topology == MPI_GRAPH) native.Graph_create(MPI_COMM_SELF, 1, &two, own, 0, &self);
  if (topology == MPI_DIST_GRAPH)
    native.Dist_graph_create_adjacent(MPI_COMM_SELF, 2, own, weights, 2, own, weights, MPI_INFO_NULL, 0, &self);
  Reversed reversed{};
  if (self == MPI_COMM_NULL) return reversed;
  for (size_t function = 0; function < reversed.size(); ++function) {
    reversed[function] = last_meets_first(self, function);
  }
  native.Comm_free(&self);
  learnt.emplace(topology, reversed);
  return reversed;
}

}  // namespace offpath::mpi
