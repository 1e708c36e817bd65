// SPDX-License-Identifier: BSD-3-Clause
// What goes on in the next session: functions, which are known there first, and tasks.
#include "client/session.hpp"
#include "client/successor.hpp"
#include "tasks/record.hpp"

#include <algorithm>
#include <utility>

namespace offpath::client {

using session::SlotState;

bool Successor::tasks_go_on() { return (lost_.service.flags & session::kServiceIsFar) == 0 && may_help(); }

bool Successor::new_tasks_go_on() {
  if (lost_.life.lost) return tasks_go_on();
  tasks_have_moved_ |= lost_.leaves() && lost_.teams.empty() && tasks_go_on() && ready_;
  return tasks_have_moved_;
}

void Successor::add(offpath_op& op) {
  op.handed_on = true;
  under_way_.insert(&op);
  waiting_.push_back(&op);
  if (ready_) submit_all();
  changed_.notify_all();
}

void Successor::forget(offpath_op& op) {
  under_way_.erase(&op);
  std::erase(waiting_, &op);
}

namespace {
// Its record says so, and the slot that the service had it.
bool may_begin_again(const offpath_session& session, const offpath_op& op) {
  const auto is_in = [&](SlotState state) {
    return session.slot(op.slot).state.load(std::memory_order_acquire) == static_cast<uint32_t>(state);
  };
  if (op.slot == offpath_op::kQueued || is_in(SlotState::posted)) return true;
  const auto task = tasks::decode_task(op.record);
  return task.ok() && (task->flags & OFFPATH_TASK_STAYS_HOME) == 0 &&
         std::none_of(task->ranges.begin(), task->ranges.end(),
                      [](const auto& range) { return range.access == OFFPATH_TASK_INOUT; });
}
}  // namespace

std::optional<offpath_status_t> Successor::settle(offpath_op& op) {
  if (!op.handed_on) {
    if (!may_begin_again(lost_, op) || !tasks_go_on()) return std::nullopt;
    std::erase(lost_.queue, &op);
    add(op);
  } else if (op.again != nullptr) {
    const offpath_status_t status = offpath_op_test(op.again.get());
    if (status == OFFPATH_IN_PROGRESS) return status;
    op.result = op.again->result;
    offpath_op_free(op.again.release());
    lost_.finish(op, status);
  }
  return static_cast<offpath_status_t>(op.status.load(std::memory_order_acquire));
}

// A task may come after ones that nobody looks at.
void Successor::hand_on() {
  lost_.for_each_posted([&](offpath_op& op) {
    if (op.kind == session::OpKind::task) lost_.settle(op);
  });
}

// Functions are what they were: all of them are known there before a task is.
bool Successor::know_functions(std::unique_lock<std::mutex>& lock) {
  if (next_ == nullptr) return true;
  const auto is_new = [this](const auto& function) { return !functions_.contains(function.get()); };
  while (!stopping_) {
    const auto found = std::find_if(lost_.functions.begin(), lost_.functions.end(), is_new);
    if (found == lost_.functions.end()) return true;
    const offpath_function* const ours = found->get();
    const offpath_function_params_t params = ours->params();
    const Stay there(next_);
    lock.unlock();
    offpath_function_t* theirs = nullptr;
    const offpath_status_t status = offpath_function_register(there.session(), &params, &theirs, nullptr);
    lock.lock();
    if (status != OFFPATH_OK) return false;
    add_function(ours, theirs);
  }
  return false;
}

void Successor::add_function(const offpath_function* ours, offpath_function_t* theirs) {
  if (theirs->session == next_) functions_[ours] = theirs;
}

// In the order in which they were submitted: whatever comes after another one finds it there, or waits for it to end where it is.
void Successor::submit_all() {
  std::vector<offpath_op*> ops = std::exchange(waiting_, {});
  std::sort(ops.begin(), ops.end(), [](const auto* one, const auto* other) { return one->sequence < other->sequence; });
  for (offpath_op* op : ops) {
    const offpath_status_t status = submit(*op);
    if (status == OFFPATH_IN_PROGRESS) {
      waiting_.push_back(op);
    } else if (status != OFFPATH_OK) {
      lost_.finish(*op, status);
    }
  }
}

offpath_status_t Successor::submit(offpath_op& op) {
  const auto task = tasks::decode_task(op.record);
  if (!task.ok()) return OFFPATH_ERR_SERVICE_LOST;
  const auto is = [&](const auto& entry) { return entry.first->number == task->function; };
  const auto function = std::find_if(functions_.begin(), functions_.end(), is);
  if (function == functions_.end()) return OFFPATH_ERR_SERVICE_LOST;
  std::vector<offpath_op*> after;
  for (offpath_op* before : op.after) lost_.settle(*before);  // first, as one may be named twice, and ends meanwhile
  for (const offpath_op* before : op.after) {
    const auto status = static_cast<offpath_status_t>(before->status.load(std::memory_order_acquire));
    if (status == OFFPATH_OK) continue;
    if (status != OFFPATH_IN_PROGRESS) return OFFPATH_ERR_DEPENDENCE;
    if (before->again == nullptr || before->again->session != next_) return OFFPATH_IN_PROGRESS;
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
