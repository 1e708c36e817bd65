// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/narrowed.hpp"

#include "mpi/native/native.hpp"

#include <climits>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

namespace offpath::mpi {
namespace {

// Arrays that native requests may read until they end, which nobody tells us. Equal ones are kept once: a program has
// few.
class KeptArrays {
 public:
  const int* keep(std::vector<int> array) {
    std::lock_guard lock(mutex_);
    return arrays_.insert(std::move(array)).first->data();
  }

 private:
  std::mutex mutex_;
  std::set<std::vector<int>> arrays_;
};

KeptArrays kept_arrays;

// Of whom a rank gets something, and to whom it sends.
struct Peers {
  int sources = 0;
  int destinations = 0;
};

Peers peers_of(MPI_Comm comm) {
  int inter = 0, size = 0;
  native.Comm_test_inter(comm, &inter);
  (inter != 0 ? native.Comm_remote_size : native.Comm_size)(comm, &size);
  return {size, size};
}

Peers neighbors_of(MPI_Comm comm) {
  int topology = MPI_UNDEFINED, rank = 0, count = 0, weighted = 0;
  Peers peers;
  native.Topo_test(comm, &topology);
  switch (topology) {
    case MPI_CART:
      native.Cartdim_get(comm, &count);
      return {2 * count, 2 * count};
    case MPI_GRAPH:
      native.Comm_rank(comm, &rank);
      native.Graph_neighbors_count(comm, rank, &count);
      return {count, count};
    case MPI_DIST_GRAPH:
      native.Dist_graph_neighbors_count(comm, &peers.sources, &peers.destinations, &weighted);
      return peers;
    default:
      return peers;
  }
}

bool fits(int64_t value) { return value >= INT_MIN && value <= INT_MAX; }

// Nobody looks at it.
void clear(Stated* side) {
  side->count = 0;
  side->counts = side->displs = {};
}

}  // namespace

bool is_root(MPI_Comm comm, int root) {
  int inter = 0, rank = 0;
  native.Comm_test_inter(comm, &inter);
  if (inter != 0) return root == MPI_ROOT;
  native.Comm_rank(comm, &rank);
  return rank == root;
}

Narrowed::Narrowed(const Arguments& wide, Meaning meaning, Until until, MPI_Comm comm)
    : arguments_(wide), until_(until) {
  arguments_.large = false;
  try {
    narrow(wide, meaning, comm);
  } catch (const std::exception&) {
    code_ = MPI_ERR_NO_MEM;
  }
}

void Narrowed::narrow(const Arguments& wide, Meaning meaning, MPI_Comm comm) {
  if (meaning == Meaning::reduction) {
    // Element by element, so no derived type helps. Arrays are of the own group.
    int size = 0;
    native.Comm_size(comm, &size);
    code_ = fits(wide.recv.count) ? narrow(&arguments_.recv.counts, size) : MPI_ERR_COUNT;
    return;
  }
  const bool rooted = meaning == Meaning::recv_at_root || meaning == Meaning::send_at_root;
  if (rooted && !is_root(comm, wide.root)) {
    clear(meaning == Meaning::recv_at_root ? &arguments_.recv : &arguments_.send);
  }
  if (wide.send.buffer == MPI_IN_PLACE) clear(&arguments_.send);
  if (wide.recv.buffer == MPI_IN_PLACE) clear(&arguments_.recv);
  const Peers peers = meaning == Meaning::neighbors ? neighbors_of(comm) : peers_of(comm);
  code_ = narrow(&arguments_.send, &send_, peers.destinations);
  if (code_ == MPI_SUCCESS) code_ = narrow(&arguments_.recv, &recv_, peers.sources);
}

int Narrowed::narrow(Stated* side, std::optional<Elements>* elements, int entries) {
  if (!fits(side->count)) {
    elements->emplace(side->count, side->type);
    if ((*elements)->code() != MPI_SUCCESS) return (*elements)->code();
    side->count = (*elements)->count();
    side->type = (*elements)->type();
  }
  const int code = narrow(&side->counts, entries);
  return code == MPI_SUCCESS ? narrow(&side->displs, entries) : code;
}

int Narrowed::narrow(Numbers* numbers, int entries) {
  if (!*numbers) return MPI_SUCCESS;
  std::vector<int> array;
  array.reserve(static_cast<size_t>(entries));
  for (int i = 0; i < entries; ++i) {
    if (!fits((*numbers)[i])) return MPI_ERR_COUNT;
    array.push_back(static_cast<int>((*numbers)[i]));
  }
  if (array.empty()) array.push_back(0);  // null would be an error
  if (until_ == Until::for_ever) {
    *numbers = Numbers(kept_arrays.keep(std::move(array)));
  } else {
    arrays_.push_back(std::move(array));
    *numbers = Numbers(arrays_.back().data());
  }
  return MPI_SUCCESS;
}

}  // namespace offpath::mpi
