// SPDX-License-Identifier: BSD-3-Clause
#include "service/tasks/tasks.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace offpath::service {

using base::Status;
using tasks::Entry;
using tasks::EntryKind;
using tasks::State;
using tasks::Task;

namespace {
constexpr uint32_t kAhead = 8;  // tasks on the board per executor
constexpr uint64_t kLookIntervalNs = 5000000;
constexpr int kLookIntervalMs = 5;
constexpr int kExecutorsLookMs = Executors::kLookNs / 1000000;
}  // namespace

Tasks::Tasks(const Options& options, int bell, std::function<void()> wake, std::function<void(int, uint32_t)> watch,
             OnEnd on_end)
    : options_(options), bell_(bell), watch_(std::move(watch)), on_end_(std::move(on_end)), copies_(std::move(wake)) {}

Tasks::~Tasks() = default;

Tasks::Key Tasks::key_of(const Job& job) {
  const uint64_t deadline = job.task.deadline_ns == 0 ? UINT64_MAX : job.task.deadline_ns;
  return {-int64_t{job.task.priority}, deadline, job.serial};
}

// Nothing of all this is there before the first function is.
Status Tasks::open() {
  if (executors_ != nullptr) {
    if (executors_->living() > 0) return {};
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "all executors of tasks have ended without running one. See the service's log");
  }
  if (board_ == nullptr) {
    auto board = tasks::Board::create(options_.room_bytes, options_.executors);
    if (!board.ok()) return board.status();
    board_ = std::make_shared<tasks::Board>(std::move(board.value()));
    room_ = std::make_unique<device::Arena>(tasks::kRoomOffset, board_->bytes() - tasks::kRoomOffset);
    const uint32_t entries = std::min(tasks::kEntries, kAhead * options_.executors);
    for (uint32_t index = entries; index > 0; --index) {
      free_entries_.push_back(index - 1);
      const auto plate = room_->allocate(kPlateBytes);
      if (!plate) return Status::error(OFFPATH_ERR_NO_MEMORY, "no room for tasks. Raise OFFPATH_TASK_ROOM_BYTES");
      plates_[index - 1] = *plate;
    }
  }
  auto executors = std::make_unique<Executors>(
      Executors::Options{options_.executors, options_.executor, options_.spin, options_.memory_bytes}, *board_, bell_);
  if (const Status status = executors->start_all(); !status.ok()) return status;
  executors_ = std::move(executors);
  for (uint32_t number = 0; number < executors_->count(); ++number) watch_(executors_->ended_fd(number), number);
  base::log_write(base::LogLevel::info, "%u executor(s) of tasks", executors_->count());
  return {};
}

Tasks::Job& Tasks::add(uint64_t client, uint32_t slot, EntryKind kind, Task task) {
  auto owned = std::make_unique<Job>();
  Job& job = *owned;
  job.client = client;
  job.slot = slot;
  job.serial = next_serial_++;
  job.kind = kind;
  job.task = std::move(task);
  job.memory = homes_.at(client).memory;
  jobs_[name_of(client, slot)] = std::move(owned);
  queued_.insert({key_of(job), &job});
  if (job.task.limit_ns > 0) ++timed_;
  return job;
}

Status Tasks::register_function(uint64_t client, uint32_t slot, const Home& home, tasks::Function function) {
  if (const Status status = open(); !status.ok()) return status;
  if (homes_.emplace(client, home).second && home.bytes > 0)
    executors_->add_client(client, home.file->get(), home.bytes);
  const auto number = number_of(std::move(function));
  if (!number.ok()) return number.status();
  Task load;
  load.function = number.value();
  load.priority = INT32_MAX;
  add(client, slot, EntryKind::load, std::move(load));
  return {};
}

base::Result<uint32_t> Tasks::number_of(tasks::Function function) {
  const auto found = std::find(functions_.begin(), functions_.end(), function);
  if (found != functions_.end()) return static_cast<uint32_t>(found - functions_.begin());
  if (functions_.size() == tasks::kMaxFunctions)
    return Status::error(OFFPATH_ERR_NO_MEMORY, "more than %u functions are registered with a service",
                         tasks::kMaxFunctions);
  tasks::FunctionPlace place{};
  const auto keep = [&](const std::string& text, uint64_t& offset) {
    const auto room = room_->allocate(text.size() + 1);
    if (!room) return false;
    offset = *room;
    memcpy(board_->room(*room, text.size() + 1), text.c_str(), text.size() + 1);
    return true;
  };
  if (!keep(function.library, place.library) || !keep(function.symbol, place.symbol) ||
      (function.is_signed && !keep(function.signature, place.signature))) {
    return Status::error(OFFPATH_ERR_NO_MEMORY, "no room for the name of a function");
  }
  place.is_target = function.is_target ? 1 : 0;
  board_->function(static_cast<uint32_t>(functions_.size())) = place;
  functions_.push_back(std::move(function));
  costs_.emplace_back();
  hints_.push_back(0);
  return static_cast<uint32_t>(functions_.size() - 1);
}

Status Tasks::submit(uint64_t client, uint32_t slot, Task task) {
  if (!homes_.contains(client) || task.function >= functions_.size())
    return Status::error(OFFPATH_ERR_ARGUMENT, "a task names function %u, which is not registered", task.function);
  if (const Status status = open(); !status.ok()) return status;
  add(client, slot, EntryKind::run, std::move(task));
  ++counts_.submitted;
  return {};
}

bool Tasks::cancel(uint64_t client, uint32_t slot) {
  const auto found = jobs_.find(name_of(client, slot));
  if (found == jobs_.end()) return false;
  stop(*found->second, Status::error(OFFPATH_ERR_CANCELLED, "the task was cancelled"));
  return true;
}

void Tasks::stop(Job& job, const Status& why) {
  if (job.stage == Stage::queued || job.stage == Stage::copied || job.stage == Stage::away) return end(job, {why});
  if (job.stage == Stage::copied_in) return end_after_copy(job, why);
  if (job.stage != Stage::posted || job.taken_away || job.kill_at_ns != 0) return;
  Entry& entry = board_->entry(job.entry);
  entry.cancelled.store(1, std::memory_order_release);
  if (tasks::state_of(entry.word.load()) == State::ready) return take_away(job, why);
  if (job.task.limit_ns == 0) ++timed_;
  job.kill_at_ns = base::clock_ns() + options_.cancel_ns;
}

void Tasks::remove_client(uint64_t client) {
  if (homes_.erase(client) == 0) return;
  std::vector<std::pair<uint64_t, uint32_t>> names;
  for (const auto& [name, job] : jobs_) {
    if (job->client == client) names.emplace_back(name, job->slot);
  }
  for (const auto& [name, slot] : names) {
    cancel(client, slot);
    const auto found = jobs_.find(name);
    if (found == jobs_.end()) continue;
    Job& job = *found->second;  // it runs, or something of it is copied
    job.client = 0;
    if (job.copy != 0) copies_.stop(job.copy);
    left_[job.serial] = std::move(jobs_.extract(found).mapped());
  }
  kept_.remove_client(client, *room_);
  executors_->remove_client(client);
}

bool Tasks::progress() {
  if (executors_ == nullptr) return false;
  bool any = collect();
  any |= feed();
  any |= copies_.progress();
  any |= post_copied();
  if (posted_ > 0) {
    tasks::BoardHeader& head = board_->header();
    const auto core = static_cast<uint32_t>(sched_getcpu() + 1);
    if (head.worker_core.load(std::memory_order_relaxed) != core)
      head.worker_core.store(core, std::memory_order_relaxed);
    board_->wake_executors(static_cast<int>(posted_));
    posted_ = 0;
  }
  if (timed_ > 0) look_at_clock();
  if (outstanding_ > 0) look_at_executors();
  return any;
}

// Last: the slot may be used again then, and the job has gone.
void Tasks::end(Job& job, TaskEnd result) {
  release(job);
  const uint64_t client = job.client;
  const uint32_t slot = job.slot;
  if (job.kind == EntryKind::run && client != 0) ++(result.status.ok() ? counts_.done : counts_.failed);
  const uint64_t away = job.away, guest = job.guest;
  const std::unique_ptr<Job> gone = client == 0 ? std::move(left_.extract(job.serial).mapped())
                                                : std::move(jobs_.extract(name_of(client, slot)).mapped());
  if (away != 0) mover_->on_over(away);
  if (guest != 0) mover_->on_guest_ended(guest, result);
  if (client != 0) on_end_(client, slot, result);
}

void Tasks::end_after_copy(Job& job, const Status& why) {
  job.end = {};
  job.end.status = why;
  copies_.stop(job.copy);
}

// Nobody gets its result from now on; if an executor has it, that one is ended.
void Tasks::take_away(Job& job, const Status& why) {
  std::optional<uint32_t> executor;
  if (!board_->take_away(job.entry, executor)) return;  // done: its result comes
  if (!executor) return end(job, {why});
  job.taken_away = true;
  job.end = {};
  job.end.status = why;
  if (*executor < executors_->count()) executors_->kill(*executor);
}

void Tasks::look_at_clock() {
  const uint64_t now_ns = base::clock_ns();
  if (now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kLookIntervalNs;
  for (Job* job : std::array<Job*, tasks::kEntries>(on_board_)) {
    if (job == nullptr || job->stage != Stage::posted || job->taken_away) continue;
    const Entry& entry = board_->entry(job->entry);
    const uint64_t begun_ns = entry.begun_ns.load(std::memory_order_acquire);
    if (job->kill_at_ns != 0 && now_ns >= job->kill_at_ns) {
      take_away(*job, Status::error(OFFPATH_ERR_CANCELLED, "the task was cancelled, and ended as it went on"));
    } else if (job->task.limit_ns != 0 && begun_ns != 0 && now_ns > begun_ns &&
               now_ns - begun_ns > job->task.limit_ns) {
      take_away(*job, Status::error(OFFPATH_ERR_TASK, "function '%.60s' ran for longer than its limit of %llu ms",
                                    functions_[job->task.function].symbol.c_str(),
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
  uint64_t idle = executors_->count() >= 64 ? UINT64_MAX : (uint64_t{1} << executors_->count()) - 1;
  for (const Job* job : on_board_) {
    if (job == nullptr || job->stage != Stage::posted) continue;
    const uint32_t word = board_->entry(job->entry).word.load(std::memory_order_acquire);
    waits |= tasks::state_of(word) == State::ready;
    if (tasks::state_of(word) != State::ready) idle &= ~(uint64_t{1} << tasks::executor_of(word) % 64);
  }
  executors_->end_stopped(now_ns, waits, idle);
}

bool Tasks::begin_again(Job& job) {
  const bool once = (job.task.flags & OFFPATH_TASK_STAYS_HOME) != 0;
  if (once || job.begun_again || job.client == 0 || job.kill_at_ns != 0) return false;
  for (uint32_t i = 0; i < job.task.ranges.size(); ++i) {
    const bool copied =
        std::any_of(job.pieces.begin(), job.pieces.end(), [&](const Range& one) { return one.range == i; });
    if (!copied && (job.task.ranges[i].access & OFFPATH_TASK_INOUT) == OFFPATH_TASK_INOUT) return false;
  }
  leave_board(job);
  job.begun_again = true;
  job.stage = Stage::queued;
  queued_.insert({key_of(job), &job});
  return true;
}

bool Tasks::announce_sleep() {
  if (executors_ == nullptr) return false;
  board_->header().worker_sleeps.store(1, std::memory_order_seq_cst);
  return board_->header().finished.load(std::memory_order_seq_cst) != 0 || copies_.pending() ||
         (!copied_.empty() && board_->has_room()) || (!queued_.empty() && outstanding_ == 0);
}

void Tasks::note_awake() {
  if (executors_ != nullptr) board_->header().worker_sleeps.store(0, std::memory_order_relaxed);
}

// Executors do not ring when they have made room in the ring.
int Tasks::timeout_ms() const {
  const bool waits_for_room = executors_ != nullptr && !(queued_.empty() && copied_.empty()) && !board_->has_room();
  return timed_ > 0 || waits_for_room ? kLookIntervalMs : outstanding_ > 0 ? kExecutorsLookMs : -1;
}

}  // namespace offpath::service
