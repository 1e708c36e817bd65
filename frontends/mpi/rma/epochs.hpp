// SPDX-License-Identifier: BSD-3-Clause
// Which one-sided calls MPI allows on a window now: the epochs that this process has open. Pure.
//
// A fence epoch is there for who communicates in it; any other synchronisation may follow a fence. Everything that is
// not allowed is MPI_ERR_RMA_SYNC.
//
// Threads: any. may_access() is on the way of every operation and takes no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace offpath::mpi {

class Epochs {
 public:
  explicit Epochs(int size) : size_(size), gates_(new std::atomic<Gate>[static_cast<size_t>(size)]()) {}

  // Operations to that member.
  bool may_access(int target) const {
    switch (access_.load(std::memory_order_acquire)) {
      case Access::none:
        return false;
      case Access::fence:
      case Access::lock_all:
        return true;
      case Access::start:
      case Access::lock:
        return is_open(target);
    }
    return false;
  }
  // Flushes: passive target only.
  bool may_flush(int target) const;
  bool may_flush_all() const;
  bool may_free() const;

  // Each: false, and nothing is changed, where MPI does not allow it.
  bool fence(bool opens);
  bool start(const std::vector<int>& targets);
  bool complete(std::vector<int>* targets);
  // `asks`: the lock is one that the target grants, and gets back; what lock said there, unlock gives back.
  bool lock(int target, bool asks);
  bool unlock(int target, bool* asked);
  bool lock_all(bool asks);
  bool unlock_all(bool* asked);
  bool post();
  bool exposed() const;
  void end_exposure();

 private:
  enum class Access : uint8_t { none, fence, start, lock, lock_all };
  enum class Gate : uint8_t { closed, open, granted };

  std::atomic<Gate>& gate(int target) const { return gates_[static_cast<size_t>(target)]; }
  bool is_open(int target) const { return gate(target).load(std::memory_order_relaxed) != Gate::closed; }
  // None, or a fence that nobody needs any more.
  bool unused() const { return access_ == Access::none || access_ == Access::fence; }

  const int size_;
  mutable std::mutex mutex_;  // changes
  std::atomic<Access> access_{Access::none};
  std::unique_ptr<std::atomic<Gate>[]> gates_;  // start, lock: by target
  int locks_ = 0;
  bool all_granted_ = false;  // lock_all
  bool exposed_ = false;
};

}  // namespace offpath::mpi
