// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/epochs.hpp"

namespace offpath::mpi {

bool Epochs::may_flush(int target) const {
  const Access access = access_.load(std::memory_order_acquire);
  return access == Access::lock_all || (access == Access::lock && is_open(target));
}

bool Epochs::may_flush_all() const {
  const Access access = access_.load(std::memory_order_acquire);
  return access == Access::lock_all || access == Access::lock;
}

bool Epochs::may_free() const {
  std::lock_guard lock(mutex_);
  return unused() && !exposed_;
}

bool Epochs::fence(bool opens) {
  std::lock_guard lock(mutex_);
  if (!unused() || exposed_) return false;
  access_ = opens ? Access::fence : Access::none;
  return true;
}

bool Epochs::start(const std::vector<int>& targets) {
  std::lock_guard lock(mutex_);
  if (!unused()) return false;
  for (const int target : targets) gate(target) = Gate::open;
  access_ = Access::start;
  return true;
}

bool Epochs::complete(std::vector<int>* targets) {
  std::lock_guard lock(mutex_);
  if (access_ != Access::start) return false;
  access_ = Access::none;
  for (int target = 0; target < size_; ++target) {
    if (!is_open(target)) continue;
    targets->push_back(target);
    gate(target) = Gate::closed;
  }
  return true;
}

bool Epochs::lock(int target, bool asks) {
  std::lock_guard lock(mutex_);
  if (!unused() && (access_ != Access::lock || is_open(target))) return false;
  gate(target) = asks ? Gate::granted : Gate::open;
  ++locks_;
  access_ = Access::lock;
  return true;
}

bool Epochs::unlock(int target, bool* asked) {
  std::lock_guard lock(mutex_);
  if (access_ != Access::lock || !is_open(target)) return false;
  *asked = gate(target).exchange(Gate::closed) == Gate::granted;
  if (--locks_ == 0) access_ = Access::none;
  return true;
}

bool Epochs::lock_all(bool asks) {
  std::lock_guard lock(mutex_);
  if (!unused()) return false;
  all_granted_ = asks;
  access_ = Access::lock_all;
  return true;
}

bool Epochs::unlock_all(bool* asked) {
  std::lock_guard lock(mutex_);
  if (access_ != Access::lock_all) return false;
  *asked = all_granted_;
  access_ = Access::none;
  return true;
}

bool Epochs::post() {
  std::lock_guard lock(mutex_);
  if (exposed_) return false;
  exposed_ = true;
  return true;
}

bool Epochs::exposed() const {
  std::lock_guard lock(mutex_);
  return exposed_;
}

void Epochs::end_exposure() {
  std::lock_guard lock(mutex_);
  exposed_ = false;
}

}  // namespace offpath::mpi
