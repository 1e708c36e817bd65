// SPDX-License-Identifier: BSD-3-Clause
// Counts operations that end in any order: how many of the first ones have ended without a gap. Pure.
#pragma once

#include <cstdint>
#include <deque>

namespace offpath::service {

class CompletionCount {
 public:
  uint64_t begun() const { return completed_ + pending_.size(); }
  uint64_t completed() const { return completed_; }
  // The number of one more.
  uint64_t begin() {
    pending_.push_back(true);
    return begun() - 1;
  }
  // `number` has begun and not ended yet.
  void end(uint64_t number) {
    pending_[number - completed_] = false;
    for (; !pending_.empty() && !pending_.front(); ++completed_) pending_.pop_front();
  }

 private:
  uint64_t completed_ = 0;
  std::deque<bool> pending_;  // from number completed_ on: not ended yet?
};

}  // namespace offpath::service
