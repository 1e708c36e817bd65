// SPDX-License-Identifier: BSD-3-Clause
// Entries: which jobs have those of a board, from when there is room for them until they have ended. It decides nothing. Used
// by the worker's thread alone.
#pragma once

#include "service/tasks/job.hpp"

#include <array>
#include <span>

namespace offpath::service {

class Entries {
 public:
  static constexpr uint64_t kPlateBytes = 4096;  // of each, for what is short

  // Precondition: the room is empty.
  Entries(Room& room, uint32_t executors);

  // False: the room is too small for any.
  bool fit() const { return plates_ != 0; }
  bool any_free() const { return !free_.empty() && board_.has_room(); }
  uint32_t in_use() const { return count_ - static_cast<uint32_t>(free_.size()); }
  // Precondition: one is free. False: there is no room for what it says.
  bool take(Job& job, std::span<const tasks::Reach> reaches);
  // Executors may begin it, and are woken by wake_executors(). False: the board is full.
  bool post(Job& job);
  void wake_executors();
  void release(Job& job);

  tasks::Entry& of(const Job& job) const { return board_.entry(job.entry); }
  // That executors may begin, or have begun. They may be released meanwhile.
  std::vector<Job*> posted() const;
  // Those that were done since the last call; false: none.
  template <typename Visit>
  bool each_done(const Visit& visit) const {
    if (in_use() == 0 || board_.header().finished.load(std::memory_order_relaxed) == 0) return false;
    for (uint64_t finished = board_.take_finished(); finished != 0; finished &= finished - 1) {
      Job* job = jobs_[static_cast<size_t>(__builtin_ctzll(finished))];  // user code may have set the bit
      if (job != nullptr && job->stage == Job::Stage::posted && state_of(*job) == tasks::State::done) visit(*job);
    }
    return true;
  }
  tasks::State state_of(const Job& job) const { return tasks::state_of(of(job).word.load()); }

 private:
  Room& room_;
  const tasks::Board& board_;
  const uint32_t count_;
  const uint64_t plates_;  // one after the other; 0: there is no room for them
  std::array<Job*, tasks::kEntries> jobs_{};
  std::vector<uint32_t> free_;
  int to_wake_ = 0;
};

}  // namespace offpath::service
