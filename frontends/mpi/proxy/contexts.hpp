// SPDX-License-Identifier: BSD-3-Clause
// Contexts: the two native communicators of one communicator of the program. A message goes into the one of its
// receiver: the program's own for host sides, a duplicate for DPU sides. So matching and order are native MPI's.
//
// Threads: any.
#pragma once

#include "mpi/native/native.hpp"

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace offpath::mpi::regions {

struct HostWindow;

struct Contexts {
  MPI_Comm hosts = MPI_COMM_NULL;    // the program's
  MPI_Comm devices = MPI_COMM_NULL;  // returns errors
  int rank = 0;
  int size = 0;
  // The key REMOTE_DEST_HETERO as each side has set it: its messages go to the other side.
  std::atomic<bool> host_crosses{false};
  std::atomic<bool> region_crosses{false};

  // Windows of host sides in the order of their creation; the one of a region belongs to the host's of its number.
  std::mutex mutex;
  std::vector<std::weak_ptr<HostWindow>> host_windows;
  size_t region_windows = 0;  // progress thread only

  ~Contexts();
  Contexts() = default;
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;
};

class ContextTable {
 public:
  // After a communicator was made. Collective over it, and the same on all its ranks. May throw bad_alloc.
  void adopt(MPI_Comm comm);
  // Before it is freed.
  void forget(MPI_Comm comm);
  void clear();
  std::shared_ptr<Contexts> find(MPI_Comm comm) const;
  // By the name in the protocol.
  std::shared_ptr<Contexts> find(uint64_t name) const;
  // Some host side has set the key. Cleared never: it is the fast path of programs that do not.
  bool any_crosses() const { return any_crosses_.load(std::memory_order_relaxed); }
  void note_crossing() { any_crosses_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> any_crosses_{false};
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<Contexts>> entries_;
};

}  // namespace offpath::mpi::regions
