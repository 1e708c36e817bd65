// SPDX-License-Identifier: BSD-3-Clause
// Tasks that go to other workers, and those that come from there: what becomes of them on this worker's board.
#include "base/clock.hpp"
#include "service/tasks/tasks.hpp"

#include <algorithm>

namespace offpath::service {

using base::Status;
using tasks::State;
using tasks::Task;

namespace {
constexpr uint32_t kLooks = 64;  // at so many tasks, for one that may go
}  // namespace

// Of its own clients.
void Tasks::each_ready(const std::function<void(const Job&)>& visit) const {
  const auto look = [&](const Job& job) {
    if (job.is_own_task()) visit(job);
  };
  for (const auto& [key, job] : queued_) look(*job);
  for (const Job* job : copied_) look(*job);
  for (const Job* job : shop_->entries.posted()) {
    if (shop_->entries.state_of(*job) == State::ready) look(*job);
  }
}

tasks::Load Tasks::load() const {
  tasks::Load out;
  if (shop_ == nullptr) return out;
  out.executors = shop_->executors.living();
  each_ready([&](const Job& job) {
    ++out.ready;
    out.ready_ns += shop_->functions.cost_of(job.task);
  });
  const uint64_t now_ns = base::clock_ns();
  for (const Job* job : shop_->entries.posted()) {
    if (job->kind != tasks::EntryKind::run || shop_->entries.state_of(*job) != State::running) continue;
    ++out.running;
    const uint64_t begun_ns = shop_->entries.of(*job).begun_ns.load(std::memory_order_relaxed);
    const uint64_t cost_ns = shop_->functions.cost_of(job->task), end_ns = begun_ns + cost_ns;
    out.running_ns += begun_ns == 0 ? cost_ns : end_ns > now_ns ? std::min(cost_ns, end_ns - now_ns) : 0;
  }
  return out;
}

uint64_t Tasks::mean_elsewhere_ns(const std::map<uint32_t, tasks::Mean>& runs) const {
  uint64_t count = 0, sum_ns = 0;
  each_ready([&](const Job& job) {
    const uint64_t here_ns = shop_->functions.cost_of(job.task);
    const auto found = runs.find(job.task.function);
    ++count;
    sum_ns += found == runs.end() ? here_ns : found->second.ns(here_ns);
  });
  return count == 0 ? 0 : sum_ns / count;
}

Tasks::Guests Tasks::guests_waiting() const {
  Guests out;
  for (const auto& [serial, job] : left_) {
    const bool begun = job->stage == Stage::posted && shop_->entries.state_of(*job) != State::ready;
    if (job->guest == 0 || begun) continue;
    ++out.count;
    out.ns += shop_->functions.cost_of(job->task);
  }
  return out;
}

bool Tasks::may_go(const Job& job, const MayGo& may_go) const {
  return job.is_own_task() && job.away == 0 && (job.task.flags & OFFPATH_TASK_STAYS_HOME) == 0 &&
         may_go(job.client, job.task, shop_->functions[job.task.function]);
}

// Those that are on the board already are taken from there: an executor that has begun one keeps it.
std::optional<Tasks::Given> Tasks::give(uint64_t number, const MayGo& allowed) {
  Job* found = nullptr;
  uint32_t looks = 0;
  for (auto next = queued_.rbegin(); next != queued_.rend() && found == nullptr && looks < kLooks; ++next, ++looks) {
    if (may_go(*next->second, allowed)) found = next->second;
  }
  if (found != nullptr) {
    queued_.erase({found->key(), found});
  } else {
    std::vector<Job*> ready = shop_->entries.posted();
    std::erase_if(ready, [&](const Job* job) {
      return job->taken_away || job->kill_at_ns != 0 || shop_->entries.state_of(*job) != State::ready ||
             !may_go(*job, allowed);
    });
    std::sort(ready.begin(), ready.end(), [](const Job* a, const Job* b) { return a->key() > b->key(); });
    for (Job* job : ready) {
      if (!shop_->room.board().take_back(job->entry)) continue;  // it has just begun
      found = job;
      leave_board(*job);
      break;
    }
  }
  if (found == nullptr) return std::nullopt;
  found->stage = Stage::away;
  found->away = number;
  away_[number] = found;
  ++counts_.moved;
  return Given{found->client, &found->task, shop_->functions.cost_of(found->task)};
}

bool Tasks::take_back(uint64_t number, bool may_still_come) {
  const auto found = away_.find(number);
  if (found == away_.end()) return false;
  Job& job = *found->second;
  if (!may_still_come) {
    job.away = 0;
    away_.erase(found);
  }
  if (job.stage != Stage::away) return false;
  ++counts_.rerun;
  job.task.flags |= OFFPATH_TASK_STAYS_HOME;  // it moves once
  job.on_copies = may_still_come;
  queue(job);
  return true;
}

bool Tasks::deliver(uint64_t number, std::vector<Room::Piece> places, TaskEnd result) {
  const auto found = away_.find(number);
  if (found == away_.end() || found->second->stage == Stage::copied_out || found->second->kill_at_ns != 0) return false;
  Job* job = found->second;
  job->away = 0;
  away_.erase(found);
  if (job->stage != Stage::away) {  // it was begun here, too: what an executor does with it goes on, and is lost
    const uint64_t client = job->client;
    Task task = job->task;
    disown(*job);
    Job& twin = add(client, job->slot, std::move(task));
    stop(*job, Status::error(OFFPATH_ERR_CANCELLED, "its result came from another node"));
    job = &twin;
  }
  ++counts_.returned;
  job->stage = Stage::copied_out;
  job->pieces = std::move(places);
  copy(*job, Stage::copied_out, OFFPATH_TASK_OUT);
  if (job->copy == 0) {
    end(*job, std::move(result));
  } else {
    job->end = std::move(result);
  }
  return true;
}

void Tasks::host(uint64_t guest, Task task) { queue(add(0, 0, std::move(task), tasks::EntryKind::run, guest)); }

void Tasks::cancel_guest(uint64_t guest) {
  const auto found =
      std::find_if(left_.begin(), left_.end(), [&](const auto& entry) { return entry.second->guest == guest; });
  if (found != left_.end()) stop(*found->second, Status::error(OFFPATH_ERR_CANCELLED, "nobody wants its result"));
}

}  // namespace offpath::service
