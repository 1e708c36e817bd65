// SPDX-License-Identifier: BSD-3-Clause
#include "ops/onesided/locks.hpp"

#include <algorithm>

namespace offpath::ops::onesided {

using graph::RequestId;

Locks::Outcome Locks::lock(uint32_t rank, bool exclusive, RequestId request) {
  const bool waits = std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& w) { return w.rank == rank; });
  if (waits || holders_.contains(rank)) return Outcome::refused;
  if (!waiting_.empty() || !free_for(exclusive)) {
    waiting_.push_back({rank, exclusive, request});
    return Outcome::waits;
  }
  hold(rank, exclusive);
  return Outcome::granted;
}

void Locks::hold(uint32_t rank, bool exclusive) {
  holders_.insert(rank);
  held_exclusively_ = exclusive;
}

bool Locks::unlock(uint32_t rank) { return holders_.erase(rank) > 0; }

void Locks::forget(uint32_t rank) {
  holders_.erase(rank);
  std::erase_if(waiting_, [&](const Waiting& w) { return w.rank == rank; });
}

std::vector<RequestId> Locks::grant() {
  std::vector<RequestId> granted;
  while (!waiting_.empty() && free_for(waiting_.front().exclusive)) {
    const Waiting& next = waiting_.front();
    hold(next.rank, next.exclusive);
    granted.push_back(next.request);
    waiting_.pop_front();
  }
  return granted;
}

std::vector<RequestId> Locks::give_up() {
  std::vector<RequestId> waited;
  for (const Waiting& w : waiting_) waited.push_back(w.request);
  waiting_.clear();
  return waited;
}

}  // namespace offpath::ops::onesided
