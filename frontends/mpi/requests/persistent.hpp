// SPDX-License-Identifier: BSD-3-Clause
// Persistent collectives that are offloaded. The application holds the native library's persistent request, which is
// never started; each start makes a request that stands for it, and the waiting functions (requests.hpp) exchange one
// for the other around the native call. An inactive one is exchanged for MPI_REQUEST_NULL, which means the same to
// them: MPICH waits for ever for a persistent collective that was never started.
//
// Threads: any; MPI forbids two threads to use one request at a time.
#pragma once

#include "mpi/calls/call.hpp"
#include "mpi/lanes/lane.hpp"

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace offpath::mpi {

struct Persistent {
  std::shared_ptr<const Call> call;
  Lane* lane;                              // its own; the offloader's
  MPI_Request current = MPI_REQUEST_NULL;  // what stands for it

  bool active() const { return current != MPI_REQUEST_NULL; }
  // MPI error code, after the communicator's handler was called. Not Inside.
  int start();

 private:
  int issue();
};

class Persistents {
 public:
  // May throw bad_alloc; then the collective is native, as on no other rank.
  void add(MPI_Request request, std::shared_ptr<const Call> call, std::unique_ptr<Lane> lane);
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  // nullptr: not one of these.
  Persistent* find(MPI_Request request) const;
  void remove(MPI_Request request);
  // At MPI_Finalize, when nothing is under way.
  void clear();

 private:
  std::atomic<uint64_t> count_{0};  // to know without the lock that there are none
  mutable std::mutex mutex_;
  std::unordered_map<uintptr_t, std::unique_ptr<Persistent>> entries_;
};

extern Persistents persistents;

}  // namespace offpath::mpi
