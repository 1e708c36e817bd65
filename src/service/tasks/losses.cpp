// SPDX-License-Identifier: BSD-3-Clause
// Tasks whose executors have ended, and what there is to say of all.
#include "service/tasks/tasks.hpp"

#include "base/log.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace offpath::service {

using base::Status;
using tasks::EntryKind;
using tasks::State;

void Tasks::on_executor_ended(uint32_t number) {
  if (executors_ == nullptr || number >= executors_->count() || executors_->process(number) <= 0) return;
  const auto process = static_cast<uint32_t>(executors_->process(number));
  collect();  // what it has done before
  int32_t signal = 0;
  const bool given_up = executors_->was_given_up(number);
  const std::string words = executors_->take_last_words(number, signal);
  ++counts_.executors_lost;
  for (Job* job : std::array<Job*, tasks::kEntries>(on_board_)) {
    if (job == nullptr || job->stage != Stage::posted) continue;
    const uint32_t word = board_->entry(job->entry).word.load(std::memory_order_acquire);
    if (tasks::executor_of(word) != number) continue;
    const State state = tasks::state_of(word);
    if (state == State::done && !job->taken_away) {
      take_result(*job);
    } else if (state == State::taken_away && job->taken_away) {
      executors_->note_use(number);
      job->end.executor = process;
      end(*job, job->end);
    } else if (state == State::running) {
      executors_->note_use(number);
      if (given_up && begin_again(*job)) continue;
      TaskEnd result;
      result.executor = process;
      result.signal = signal;
      const char* what = job->kind == EntryKind::load ? "while it was loaded, " : "";
      result.status = job->kill_at_ns != 0
                          ? Status::error(OFFPATH_ERR_CANCELLED, "the task was cancelled")
                          : Status::error(OFFPATH_ERR_TASK, "function '%.60s': %s%s",
                                          functions_[job->task.function].symbol.c_str(), what, words.c_str());
      end(*job, result);
    }
  }
  base::log_write(base::LogLevel::warn, "executor %u of tasks (process %u) has ended: %s", number, process,
                  words.c_str());
  if (executors_->replace(number)) {
    watch_(executors_->ended_fd(number), number);
  } else if (executors_->living() == 0) {
    fail_all(Status::error(OFFPATH_ERR_NO_SERVICE, "all executors of tasks have ended without running one (%.120s)",
                           words.c_str()));
  }
}

void Tasks::fail_all(const Status& status) {
  std::vector<Job*> all;
  for (const auto& [name, job] : jobs_) all.push_back(job.get());
  for (const auto& [serial, job] : left_) {
    if (job->guest != 0) all.push_back(job.get());
  }
  for (Job* job : all) {
    std::optional<uint32_t> executor;
    if (job->stage == Stage::copied_out) continue;  // it was done
    if (job->stage == Stage::copied_in) {
      end_after_copy(*job, status);
      continue;
    }
    if (job->stage == Stage::posted) board_->take_away(job->entry, executor);
    end(*job, {status});
  }
}

void Tasks::log_counts() const {
  if (counts_.submitted == 0 && counts_.executed == 0) return;
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  base::log_write(
      base::LogLevel::info,
      "tasks: %llu submitted, %llu done, %llu failed; %llu moved, of these %llu returned and %llu begun here, "
      "too; executors ran %llu in %.3f s",
      number(counts_.submitted), number(counts_.done), number(counts_.failed), number(counts_.moved),
      number(counts_.returned), number(counts_.rerun), number(counts_.executed),
      static_cast<double>(counts_.run_ns) / 1e9);
}

TaskCounts Tasks::counts() const {
  TaskCounts counts = counts_;
  counts.waiting = static_cast<uint32_t>(queued_.size());
  counts.running = outstanding_;
  return counts;
}

}  // namespace offpath::service
