// SPDX-License-Identifier: BSD-3-Clause
#include "client/successor.hpp"

#include "base/clock.hpp"
#include "base/quiet_thread.hpp"
#include "base/result.hpp"
#include "client/session.hpp"
#include "tasks/record.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace offpath::client {
namespace {

constexpr uint64_t kNapNs = 100'000'000;                 // then it looks whether the service lives
constexpr std::chrono::milliseconds kUntilItHasOne{10};  // a successor, as tasks of the next session are looked at
constexpr uint64_t kMinuteNs = 60'000'000'000;
constexpr size_t kMostLosses = 3;  // a minute

// Of this process, whose sessions may lose the same one.
bool is_lost_too_often(pid_t service) {
  static std::mutex mutex;
  static std::map<pid_t, uint64_t> losses;  // when
  std::lock_guard lock(mutex);
  const uint64_t now = base::clock_ns();
  std::erase_if(losses, [&](const auto& loss) { return now - loss.second > kMinuteNs; });
  losses.emplace(service, now);
  return losses.size() >= kMostLosses;
}

}  // namespace

std::unique_ptr<Successor> Successor::make(offpath_session& lost) {
  if (is_lost_too_often(lost.service_pid)) return nullptr;
  std::unique_ptr<Successor> made(new Successor(lost));
  try {
    made->thread_ = base::quiet_thread([successor = made.get()] { successor->run(); });
  } catch (const std::exception&) {  // the system has no thread left
    return nullptr;
  }
  return made;
}

Successor::~Successor() {
  {
    std::lock_guard lock(lost_.mutex);
    stopping_ = true;
    changed_.notify_all();
    if (next_ != nullptr) next_->wake_sleepers();
  }
  if (thread_.joinable()) thread_.join();
  offpath_session_detach(next_);
}

void Successor::add(offpath_op& op) {
  under_way_.insert(&op);
  waiting_.push_back(&op);
  if (ready_) submit_all();
  changed_.notify_all();
}

void Successor::forget(offpath_op& op) {
  under_way_.erase(&op);
  std::erase(waiting_, &op);
}

offpath_session_t* Successor::await(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return ready_ || failed_ || stopping_; });
  return ready_ ? next_ : nullptr;
}

offpath_status_t Successor::look(offpath_session_t** next) const {
  if (ready_) *next = next_;
  return ready_ ? OFFPATH_OK : failed_ ? OFFPATH_ERR_NO_SERVICE : OFFPATH_IN_PROGRESS;
}

offpath_status_t next_session(offpath_session_t* lost, offpath_session_t** next) {
  const base::ErrnoGuard errno_guard;
  if (lost == nullptr || !lost->mine() || !lost->lost) return OFFPATH_ERR_STATE;
  std::lock_guard lock(lost->mutex);
  return lost->has_successor() ? lost->successor->look(next) : OFFPATH_ERR_NO_SERVICE;
}

void Successor::run() {
  const bool attached = attach();
  std::unique_lock lock(lost_.mutex);
  if (attached && !stopping_) lost_.hand_on();
  ready_ = attached;
  failed_ = !attached;
  if (attached && !stopping_) {
    submit_all();
  } else if (!stopping_) {
    lost_.is_succeeded = false;
    for (offpath_op* op : std::exchange(waiting_, {})) lost_.finish(*op, OFFPATH_ERR_SERVICE_LOST);
    lost_.wake_sleepers();
  }
  changed_.notify_all();
  while (attached && !stopping_) {
    const uint32_t seen = offpath_session_events(next_);
    lost_.wake_sleepers();  // of what has ended before
    if (under_way_.empty()) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    offpath_status_t slept = OFFPATH_IN_PROGRESS;
    while (slept == OFFPATH_IN_PROGRESS) slept = offpath_session_sleep(next_, seen, kNapNs);
    if (slept != OFFPATH_OK) std::this_thread::sleep_for(kUntilItHasOne);
    lock.lock();
  }
}

// Functions are what they were: all of them are known there before a task is.
bool Successor::attach() {
  offpath_session_t* next = nullptr;
  if (offpath_session_attach(&lost_.params, &next, nullptr) != OFFPATH_OK) return false;
  std::vector<const offpath_function*> known;
  {
    std::lock_guard lock(lost_.mutex);
    next_ = next;
    next->timing.store(lost_.timing);
    for (const auto& function : lost_.functions) known.push_back(function.get());
  }
  for (const offpath_function* ours : known) {
    const offpath_function_params_t params = ours->params();
    offpath_function_t* theirs = nullptr;
    if (offpath_function_register(next, &params, &theirs, nullptr) != OFFPATH_OK) return false;
    std::lock_guard lock(lost_.mutex);
    functions_[ours] = theirs;
  }
  return true;
}

// In the order in which they were submitted: whatever comes after another one finds it there.
void Successor::submit_all() {
  std::vector<offpath_op*> ops = std::exchange(waiting_, {});
  std::sort(ops.begin(), ops.end(), [](const auto* one, const auto* other) { return one->sequence < other->sequence; });
  for (offpath_op* op : ops) {
    const offpath_status_t status = submit(*op);
    if (status != OFFPATH_OK) lost_.finish(*op, status);
  }
}

offpath_status_t Successor::submit(offpath_op& op) {
  const auto task = tasks::decode_task(op.record);
  if (!task.ok()) return OFFPATH_ERR_SERVICE_LOST;
  const auto is = [&](const auto& entry) { return entry.first->number == task->function; };
  const auto function = std::find_if(functions_.begin(), functions_.end(), is);
  if (function == functions_.end()) return OFFPATH_ERR_SERVICE_LOST;
  std::vector<offpath_op*> after;
  for (const offpath_op* before : op.after) {
    const auto status = static_cast<offpath_status_t>(before->status.load(std::memory_order_acquire));
    if (status == OFFPATH_OK) continue;
    if (status != OFFPATH_IN_PROGRESS || before->again == nullptr) return OFFPATH_ERR_DEPENDENCE;
    after.push_back(before->again.get());
  }
  std::vector<offpath_task_range_t> ranges;
  for (const tasks::RangeRecord& range : task->ranges) {
    ranges.push_back({reinterpret_cast<void*>(range.address), range.bytes, range.access, range.version});
  }
  offpath_task_params_t params{};
  params.struct_bytes = sizeof(params);
  params.flags = task->flags;
  params.function = function->second;
  params.argument = task->argument.data();
  params.argument_bytes = task->argument.size();
  params.ranges = ranges.data();
  params.ranges_count = static_cast<uint32_t>(ranges.size());
  params.after = after.data();
  params.after_count = static_cast<uint32_t>(after.size());
  params.priority = task->priority;
  params.limit_ns = task->limit_ns;
  params.cost_ns = task->cost_ns;
  params.deadline_ns = task->deadline_ns;
  offpath_op_t* again = nullptr;
  const offpath_status_t status = offpath_task_submit(next_, &params, &again);
  op.again.reset(again);
  return status == OFFPATH_OK ? status : OFFPATH_ERR_SERVICE_LOST;
}

}  // namespace offpath::client
