// SPDX-License-Identifier: BSD-3-Clause
// Which windows are offloaded. That is decided once, when a window is created, and alike on all its ranks: by the info
// key "offpath" of its rank 0 ("dpu" or "host"), else by the policy's row "window".
//
// Threads: any.
#pragma once

#include "mpi/native/handle_table.hpp"
#include "mpi/native/native.hpp"
#include "mpi/rma/offloaded_window.hpp"
#include "mpi/rma/window_memory.hpp"

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace offpath::mpi {

struct WindowTotals {
  std::atomic<uint64_t> offloaded_count{0};
  std::atomic<uint64_t> native_count{0};      // windows whose ranks could have been served
  std::atomic<uint64_t> mixed_count{0};       // offloaded ones with a native way
  std::atomic<uint64_t> operations_count{0};  // of windows that were freed
  std::atomic<uint64_t> operations_bytes{0};
  std::atomic<uint64_t> natively_count{0};  // operations on offloaded windows that went natively
  std::atomic<uint64_t> natively_bytes{0};
  std::atomic<uint64_t> elsewhere_count{0};  // operations on native windows
};

class Windows {
 public:
  // nullptr: the call is native.
  OffloadedWindow* find(MPI_Win win) const { return count() == 0 || Inside::here() ? nullptr : table_.find(win); }
  // Those that have the members of `comm`, and in which these agree now, in the same order on all of them. Inside.
  std::vector<std::shared_ptr<OffloadedWindow>> meeting_on(MPI_Comm comm);
  size_t count() const { return count_.load(std::memory_order_acquire); }
  // May throw bad_alloc.
  void add(std::shared_ptr<OffloadedWindow> window);
  // Closes the window and forgets it. Inside.
  void remove(OffloadedWindow& window);
  // At MPI_Finalize, when nothing is under way. Inside.
  void clear();
  WindowTotals& totals() { return totals_; }
  const WindowTotals& totals() const { return totals_; }

  WindowMemory memory;

 private:
  void listen();
  void count_ended(const OffloadedWindow& window);

  std::atomic<size_t> count_{0};
  std::atomic<bool> listens_{false};
  HandleTable<MPI_Win, OffloadedWindow> table_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<OffloadedWindow>> owned_;
  WindowTotals totals_;
};

extern Windows windows;

}  // namespace offpath::mpi
