// SPDX-License-Identifier: BSD-3-Clause
// Where the ranks of a communicator are, found out by this process alone when it first needs it, until the communicator
// is freed.
//
// Threads: any.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace offpath::mpi {

struct Route {
  std::atomic<MPI_Comm> comm{MPI_COMM_NULL};  // null once it was freed
  std::vector<int> world;                     // by rank: in MPI_COMM_WORLD, or negative. Empty: an intercommunicator

  // Negative: none that messages could be offloaded to, or no rank.
  int world_rank(int rank) const {
    return rank >= 0 && static_cast<size_t>(rank) < world.size() ? world[static_cast<size_t>(rank)] : -1;
  }
  // Calls the error handler and returns `code`. Not Inside.
  int raise(int code) const;
};
using RouteRef = std::shared_ptr<Route>;

// Of a message: the library takes it.
bool good_tag(int tag);

class Routes {
 public:
  // MPI error code. Inside.
  int open();
  void close();
  // nullptr: not a communicator that can be asked. May throw bad_alloc.
  RouteRef find(MPI_Comm comm);
  // The same for who receives: nullptr also for an intercommunicator, where no tickets go.
  RouteRef find_intra(MPI_Comm comm);

 private:
  static int forget(MPI_Comm comm, int keyval, void* value, void* state);
  RouteRef make(MPI_Comm comm);

  std::mutex mutex_;
  std::unordered_map<uintptr_t, RouteRef> routes_;
  int keyval_ = MPI_KEYVAL_INVALID;
};

}  // namespace offpath::mpi
