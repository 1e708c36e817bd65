// SPDX-License-Identifier: BSD-3-Clause
// Tasks that are taken from their executors, executors that have ended, and what there is to say of all.
#include "base/clock.hpp"
#include "base/log.hpp"
#include "service/tasks/tasks.hpp"

#include <algorithm>
#include <string>

namespace offpath::service {

using base::Status;
using tasks::Entry;
using tasks::EntryKind;
using tasks::State;

namespace {
constexpr uint64_t kLookIntervalNs = 5000000;
}  // namespace

// Nobody gets its result from now on; if an executor has it, that one is ended.
void Tasks::take_away(Job& job, const Status& why) {
  std::optional<uint32_t> executor;
  if (!shop_->room.board().take_away(job.entry, executor)) return;  // done: its result comes
  if (!executor) return end(job, {why});
  job.taken_away = true;
  job.end = {why};
  if (*executor < executors()) shop_->executors.kill(*executor);
}

void Tasks::look_at_clock() {
  const uint64_t now_ns = base::clock_ns();
  if (now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kLookIntervalNs;
  for (Job* job : shop_->entries.posted()) {
    if (job->taken_away) continue;
    const uint64_t begun_ns = shop_->entries.of(*job).begun_ns.load(std::memory_order_acquire);
    if (job->kill_at_ns != 0 && now_ns >= job->kill_at_ns) {
      take_away(*job, Status::error(OFFPATH_ERR_CANCELLED, "the task was cancelled, and ended as it went on"));
    } else if (job->task.limit_ns != 0 && begun_ns != 0 && now_ns > begun_ns &&
               now_ns - begun_ns > job->task.limit_ns) {
      take_away(*job, Status::error(OFFPATH_ERR_TASK, "function '%.60s' ran for longer than its limit of %llu ms",
                                    shop_->functions[job->task.function].symbol.c_str(),
                                    static_cast<unsigned long long>(job->task.limit_ns / 1000000)));
    }
  }
}

// A limit of a task counts only what it runs; many have none.
void Tasks::look_at_executors() {
  const uint64_t now_ns = base::clock_ns(CLOCK_MONOTONIC_COARSE);
  if (now_ns < executors_look_ns_) return;
  executors_look_ns_ = now_ns + Executors::kLookNs;
  bool waits = false;
  uint64_t idle = executors() >= 64 ? UINT64_MAX : (uint64_t{1} << executors()) - 1;
  for (const Job* job : shop_->entries.posted()) {
    const uint32_t word = shop_->entries.of(*job).word.load(std::memory_order_acquire);
    waits |= tasks::state_of(word) == State::ready;
    if (tasks::state_of(word) != State::ready) idle &= ~(uint64_t{1} << tasks::executor_of(word) % 64);
  }
  shop_->executors.end_stopped(now_ns, waits, idle);
}

bool Tasks::begin_again(Job& job) {
  const bool once = (job.task.flags & OFFPATH_TASK_STAYS_HOME) != 0;
  if (once || job.begun_again || job.client == 0 || job.kill_at_ns != 0) return false;
  for (uint32_t i = 0; i < job.task.ranges.size(); ++i) {
    const bool copied =
        std::any_of(job.pieces.begin(), job.pieces.end(), [&](const Room::Piece& one) { return one.range == i; });
    if (!copied && (job.task.ranges[i].access & OFFPATH_TASK_INOUT) == OFFPATH_TASK_INOUT) return false;
  }
  leave_board(job);
  job.begun_again = true;
  queue(job);
  return true;
}

void Tasks::on_executor_ended(uint32_t number) {
  if (shop_ == nullptr || number >= executors() || shop_->executors.process(number) <= 0) return;
  Executors& all = shop_->executors;
  const auto process = static_cast<uint32_t>(all.process(number));
  collect();  // what it has done before
  int32_t signal = 0;
  const bool given_up = all.was_given_up(number);
  const std::string words = all.take_last_words(number, signal);
  for (Job* job : shop_->entries.posted()) {
    const uint32_t word = shop_->entries.of(*job).word.load(std::memory_order_acquire);
    if (tasks::executor_of(word) != number) continue;
    const State state = tasks::state_of(word);
    if (state == State::done && !job->taken_away) {
      take_result(*job);
    } else if (state == State::taken_away && job->taken_away) {
      all.note_use(number);
      job->end.executor = process;
      end(*job, job->end);
    } else if (state == State::running) {
      all.note_use(number);
      if (given_up && begin_again(*job)) continue;
      TaskEnd result;
      result.executor = process;
      result.signal = signal;
      const char* what = job->kind == EntryKind::load ? "while it was loaded, " : "";
      result.status = job->kill_at_ns != 0
                          ? Status::error(OFFPATH_ERR_CANCELLED, "the task was cancelled")
                          : Status::error(OFFPATH_ERR_TASK, "function '%.60s': %s%s",
                                          shop_->functions[job->task.function].symbol.c_str(), what, words.c_str());
      end(*job, result);
    }
  }
  base::log_write(base::LogLevel::warn, "executor %u of tasks (process %u) has ended: %s", number, process,
                  words.c_str());
  if (all.replace(number)) {
    watch_(all.ended_fd(number), number);
  } else if (all.living() == 0) {
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
    if (job->stage != Stage::posted) {
      stop(*job, status);
    } else {
      std::optional<uint32_t> executor;
      shop_->room.board().take_away(job->entry, executor);
      end(*job, {status});
    }
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

}  // namespace offpath::service
