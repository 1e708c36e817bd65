// SPDX-License-Identifier: BSD-3-Clause
// A window whose one-sided operations go to the service. The native window exists too: it is the application's handle
// and keeps its attributes, info, group, name and error handler. Where there is a mixture, some puts and gets go to it.
//
// It has a team of its own, and on that two windows of the service: one for data, and one for nothing but locks, so
// that a flush never waits for a lock that another thread of this process waits for.
//
// When a service is lost, it goes on without (homecoming.hpp).
//
// States: open until MPI_Win_free; then closed, and the last request of it (transfer.hpp) deletes it.
// Threads: any.
#pragma once

#include "mpi/calls/staging.hpp"
#include "mpi/lanes/communicators.hpp"
#include "mpi/rma/epochs.hpp"
#include "mpi/rma/footprint.hpp"
#include "mpi/rma/handshake.hpp"
#include "mpi/rma/homecoming.hpp"
#include "mpi/rma/mixture.hpp"
#include "mpi/rma/submission.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace offpath::mpi {

// Data of one operation that passes through staging memory. It is kept until the operation is done.
struct Staged {
  Staging memory;
  std::optional<Footprint> footprint;  // fetched data: where it goes; nothing for data that is sent
  uintptr_t address = 0;
  uint64_t bytes = 0;
  uint64_t through = 0;  // done when so many operations of the window have completed

  // Puts fetched data where it belongs, once. Whoever comes meanwhile waits until it is there: a flush on one thread, and
  // the request's end on another, each promise the data.
  void deliver();

 private:
  std::once_flag delivered_;
};

// What a window exposes at one member.
struct Exposed {
  int64_t bytes = 0;
  int64_t unit_bytes = 1;  // of displacements
};

class OffloadedWindow : public std::enable_shared_from_this<OffloadedWindow> {
 public:
  // Takes what `team` holds. `exposed`: by member; empty: dynamic.
  OffloadedWindow(MPI_Win handle, Assembly team, std::vector<Exposed> exposed);
  ~OffloadedWindow();
  OffloadedWindow(const OffloadedWindow&) = delete;
  OffloadedWindow& operator=(const OffloadedWindow&) = delete;

  // Opens this process's part at the service. Blocking until the service answers. A text says what failed.
  offpath_status_t open(void* base, uint64_t bytes, offpath_error_t* error);
  // Everything of this process is done; closes its part. Inside.
  void close();

  MPI_Win handle() const { return handle_.load(std::memory_order_acquire); }
  int rank() const { return team_.rank; }
  int size() const { return team_.size; }
  MPI_Comm shadow() const { return team_.shadow; }
  bool dynamic() const { return exposed_.empty(); }
  Epochs& epochs() { return epochs_; }
  // nullptr: what a loss ends is an error.
  Homecoming* homecoming() const { return homecoming_.get(); }
  Handshake& handshake() { return handshake_; }
  // nullptr: everything goes to the service.
  Mixture* mixture() const { return mixture_.get(); }
  // Before anybody uses the window.
  void mix(std::unique_ptr<Mixture> mixture) { mixture_ = std::move(mixture); }

  // The target's address space: offset of `displacement` there, and whether [low, high) from it lies in the window, as
  // far as it is known here. MPI error class.
  int locate(int target, int64_t displacement, int64_t low, int64_t high, uint64_t* offset) const;

  // Hands an operation over; waits where there is no room for it. `op` may be nullptr. MPI error class.
  int post(const offpath_remote_t& remote, offpath_op_t** op);
  // `staged` belongs to what was posted last. May throw bad_alloc.
  void keep(std::shared_ptr<Staged> staged);
  // Its end is wanted for the recording: looked for in later calls. May throw bad_alloc.
  void follow(Submission submission);
  // What was posted last has not let go of the application's memory when the call returns.
  void mark_unsent();
  void count_bytes(uint64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  // MPI error classes. All wait with native progress going on. flush: until everything posted is done, at the target
  // too; of what went natively only that for `target`. flush_local: until the application's memory is its own again.
  int flush(int target = Mixture::kEverybody);
  int flush_local(int target = Mixture::kEverybody);
  int lock(offpath_remote_kind_t kind, const std::vector<int>& targets);
  int unlock(const std::vector<int>& targets);
  // Attaches and detaches memory of this process. attach() may throw bad_alloc.
  int attach(void* base, uint64_t bytes);
  int detach(void* base);

  // Requests of the application that are under way. finish_requests: until there are none; everything posted is done.
  void count_request(int change) { requests_.fetch_add(change, std::memory_order_acq_rel); }
  void finish_requests();
  // All members come here when they have no operation left: then nobody asks anything of anybody any more.
  void part();

  // One round for whatever native communication needs this process.
  void nudge();
  // Calls the window's error handler where `code` is an error of `call` ("MPI_Put"); returns it. Not Inside.
  int raise(const char* call, int code) const;
  int code_of(offpath_status_t status) const;
  // A service of its members is, as far as it is known here.
  bool lost() const;

  uint64_t operations() const { return data_ == nullptr ? 0 : offpath_window_issued(data_); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  void wait_until(const char* call, const std::function<bool()>& ready);
  // So many operations, from the first one posted.
  uint64_t over() const { return homecoming_ ? homecoming_->over() : offpath_window_completed(data_); }
  // Nothing is under way at the service, or at home.
  bool quiet() const { return over() == offpath_window_issued(data_); }
  offpath_status_t advance(LockWish& wish);
  int flush_served();
  int detach_region(void* base);
  int end_flush(offpath_status_t status);
  void settle_staged(bool deliver);
  void end_followed();

  std::atomic<MPI_Win> handle_;
  Assembly team_;
  const std::vector<Exposed> exposed_;
  offpath_window_t* data_ = nullptr;
  offpath_window_t* locks_ = nullptr;
  Epochs epochs_;
  Handshake handshake_;
  std::unique_ptr<Homecoming> homecoming_;
  std::unique_ptr<Mixture> mixture_;
  std::atomic<uint64_t> unsent_{0};  // flush_local waits for so many operations
  std::atomic<uint64_t> bytes_{0};
  std::atomic<int> requests_{0};
  std::atomic<bool> any_staged_{false};
  std::mutex mutex_;  // a leaf
  std::deque<std::shared_ptr<Staged>> staged_;
  std::atomic<bool> any_followed_{false};
  std::deque<Submission> followed_;  // in the order of posting, in about which they end
  std::vector<void*> attached_empty_;
};

}  // namespace offpath::mpi
