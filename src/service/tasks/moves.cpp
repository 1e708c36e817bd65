// SPDX-License-Identifier: BSD-3-Clause
// Tasks that go to other workers, and those that come from there: what becomes of them on this worker's board.
#include "base/clock.hpp"
#include "service/tasks/tasks.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::service {

using base::Status;
using tasks::EntryKind;
using tasks::State;

namespace {

constexpr uint32_t kLooks = 64;  // at so many tasks, for one that may go

// The board's room as memory that an engine reads and writes.
class Room : public memory::Port {
 public:
  explicit Room(std::shared_ptr<tasks::Board> board) : board_(std::move(board)) {}
  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket) const override {
    const uint8_t* from = board_->room(address, bytes);
    if (from == nullptr) return outside();
    memcpy(to, from, bytes);
    return {};
  }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket) const override {
    uint8_t* to = board_->room(address, bytes);
    if (to == nullptr) return outside();
    memcpy(to, from, bytes);
    return {};
  }
  uint8_t* view(uint64_t address, size_t bytes) const override { return board_->room(address, bytes); }

 private:
  static Status outside() { return Status::error(OFFPATH_ERR_MEMORY_FAULT, "not a place on the board of tasks"); }
  std::shared_ptr<tasks::Board> board_;
};

}  // namespace

std::shared_ptr<memory::Port> Tasks::room() const { return std::make_shared<Room>(board_); }

Tasks::Job* Tasks::find(const Name& name) {
  const auto found = jobs_.find(name_of(name.client, name.slot));
  return found != jobs_.end() && found->second->serial == name.serial ? found->second.get() : nullptr;
}

// As measured; what its submitter says of it where nothing was.
uint64_t Tasks::cost_of(const tasks::Task& task) const {
  return tasks::expected_cost_ns(costs_[task.function], task.cost_ns, hints_[task.function]);
}

void Tasks::note_cost(const tasks::Task& task, uint64_t run_ns) {
  costs_[task.function].add(std::max<uint64_t>(run_ns, 1));
  if (task.cost_ns == 0) return;
  const double ratio = static_cast<double>(run_ns) / static_cast<double>(task.cost_ns);
  double& known = hints_[task.function];
  known = known == 0 ? ratio : known * 0.75 + ratio * 0.25;
}

State Tasks::state_on_board(const Job& job) const {
  return tasks::state_of(board_->entry(job.entry).word.load(std::memory_order_relaxed));
}

// Of its own clients.
void Tasks::each_ready(const std::function<void(const Job&)>& visit) const {
  const auto look = [&](const Job& job) {
    if (job.kind == EntryKind::run && job.guest == 0 && job.client != 0) visit(job);
  };
  for (const auto& [key, job] : queued_) look(*job);
  for (const Job* job : copied_) look(*job);
  for (const Job* job : on_board_) {
    if (job != nullptr && job->stage == Stage::posted && state_on_board(*job) == State::ready) look(*job);
  }
}

tasks::Load Tasks::load() const {
  tasks::Load out;
  if (executors_ == nullptr) return out;
  out.executors = executors_->living();
  each_ready([&](const Job& job) {
    ++out.ready;
    out.ready_ns += cost_of(job.task);
  });
  const uint64_t now_ns = base::clock_ns();
  for (const Job* job : on_board_) {
    if (job == nullptr || job->stage != Stage::posted || job->kind != EntryKind::run) continue;
    if (state_on_board(*job) != State::running) continue;
    ++out.running;
    const uint64_t begun_ns = board_->entry(job->entry).begun_ns.load(std::memory_order_relaxed);
    const uint64_t cost_ns = cost_of(job->task), end_ns = begun_ns + cost_ns;
    out.running_ns += begun_ns == 0 ? cost_ns : end_ns > now_ns ? std::min(cost_ns, end_ns - now_ns) : 0;
  }
  return out;
}

uint64_t Tasks::mean_elsewhere_ns(const std::map<uint32_t, tasks::Mean>& runs) const {
  uint64_t count = 0, sum_ns = 0;
  each_ready([&](const Job& job) {
    const auto found = runs.find(job.task.function);
    ++count;
    sum_ns += found == runs.end() ? cost_of(job.task) : found->second.ns(cost_of(job.task));
  });
  return count == 0 ? 0 : sum_ns / count;
}

Tasks::Guests Tasks::guests_waiting() const {
  Guests out;
  for (const auto& [serial, job] : left_) {
    if (job->guest == 0) continue;
    const bool begun =
        job->stage == Stage::posted && tasks::state_of(board_->entry(job->entry).word.load()) != State::ready;
    if (begun) continue;
    ++out.count;
    out.ns += cost_of(job->task);
  }
  return out;
}

bool Tasks::may_go(const Job& job, const MayGo& may_go) const {
  const bool ours = job.kind == EntryKind::run && job.guest == 0 && job.client != 0 && job.away == 0;
  return ours && !job.on_copies && (job.task.flags & OFFPATH_TASK_STAYS_HOME) == 0 &&
         may_go(job.client, job.task, functions_[job.task.function]);
}

// Those that are on the board already are taken from there: an executor that has begun one keeps it.
std::optional<Tasks::Given> Tasks::give(uint64_t number, const MayGo& allowed) {
  Job* found = nullptr;
  uint32_t looks = 0;
  for (auto next = queued_.rbegin(); next != queued_.rend() && found == nullptr && looks < kLooks; ++next, ++looks) {
    if (may_go(*next->second, allowed)) found = next->second;
  }
  if (found != nullptr) {
    queued_.erase({key_of(*found), found});
  } else {
    std::vector<Job*> ready;
    for (Job* job : on_board_) {
      if (job == nullptr || job->stage != Stage::posted || job->taken_away || job->kill_at_ns != 0) continue;
      if (tasks::state_of(board_->entry(job->entry).word.load()) == State::ready && may_go(*job, allowed))
        ready.push_back(job);
    }
    std::sort(ready.begin(), ready.end(), [](const Job* a, const Job* b) { return key_of(*a) > key_of(*b); });
    for (Job* job : ready) {
      if (!board_->take_back(job->entry)) continue;  // it has just begun
      found = job;
      leave_board(*job);
      break;
    }
  }
  if (found == nullptr) return std::nullopt;
  found->stage = Stage::away;
  found->away = number;
  ++counts_.moved;
  return Given{{found->client, found->slot, found->serial}, &found->task, cost_of(found->task)};
}

bool Tasks::take_back(const Name& name, bool may_still_come) {
  Job* job = find(name);
  if (job == nullptr || job->away == 0) return false;
  if (!may_still_come) job->away = 0;
  if (job->stage != Stage::away) return false;
  job->task.flags |= OFFPATH_TASK_STAYS_HOME;  // it moves once
  job->on_copies = may_still_come;
  job->stage = Stage::queued;
  queued_.insert({key_of(*job), job});
  return true;
}

// What an executor does with it goes on, and is lost.
void Tasks::disown(Job& job) {
  auto found = jobs_.find(name_of(job.client, job.slot));
  job.client = 0;
  left_[job.serial] = std::move(jobs_.extract(found).mapped());
  if (job.stage == Stage::copied_in) return copies_.stop(job.copy);
  if (job.stage != Stage::posted) return end(job, {});
  stop(job, Status::error(OFFPATH_ERR_CANCELLED, "its result came from another node"));
}

bool Tasks::deliver(const Name& name, uint64_t number, std::vector<Range> places, TaskEnd result) {
  Job* job = find(name);
  if (job == nullptr || job->away != number || job->stage == Stage::copied_out || job->kill_at_ns != 0) return false;
  job->away = 0;
  if (job->stage != Stage::away) {  // it was begun here, too
    auto twin = std::make_unique<Job>();
    twin->client = job->client;
    twin->slot = job->slot;
    twin->serial = next_serial_++;
    twin->kind = job->kind;
    twin->task = job->task;
    twin->memory = job->memory;
    if (twin->task.limit_ns > 0) ++timed_;
    disown(*job);
    job = twin.get();
    jobs_[name_of(name.client, name.slot)] = std::move(twin);
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

void Tasks::host(uint64_t guest, tasks::Task task) {
  auto owned = std::make_unique<Job>();
  Job& job = *owned;
  job.client = 0;
  job.slot = 0;
  job.serial = next_serial_++;
  job.kind = EntryKind::run;
  job.task = std::move(task);
  job.guest = guest;
  left_[job.serial] = std::move(owned);
  queued_.insert({key_of(job), &job});
  if (job.task.limit_ns > 0) ++timed_;
}

void Tasks::cancel_guest(uint64_t guest) {
  const auto found =
      std::find_if(left_.begin(), left_.end(), [&](const auto& entry) { return entry.second->guest == guest; });
  if (found != left_.end()) stop(*found->second, Status::error(OFFPATH_ERR_CANCELLED, "nobody wants its result"));
}

}  // namespace offpath::service
