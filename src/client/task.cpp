// SPDX-License-Identifier: BSD-3-Clause
// Tasks: from what callers of the C API say to records of the session segment, and back.
#include "base/result.hpp"
#include "client/session.hpp"
#include "tasks/record.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

using offpath::base::ErrnoGuard;
using offpath::base::Status;
namespace layout = offpath::session;
namespace tasks = offpath::tasks;
using layout::OpKind;

// ---- life of a task in the session, with the mutex held --------------------------------------------------------------

offpath_status_t offpath_session::post_after(std::unique_ptr<offpath_op> op, std::span<offpath_op_t* const> after,
                                             offpath_op** out) {
  op->after.assign(after.begin(), after.end());
  for (offpath_op* before : after) ++before->pins;
  const offpath_status_t status = post(std::move(op), out);
  if (status != OFFPATH_OK) {  // it was not kept
    for (offpath_op* before : after) --before->pins;
  }
  return status;
}

// Slots are known only now: what a task comes after may have waited for room before it.
void offpath_session::name_after(offpath_op& op) {
  for (size_t i = 0; i < op.after.size(); ++i) {
    offpath_op& before = *op.after[i];
    const int32_t status = before.status.load(std::memory_order_acquire);
    const bool under_way = status == OFFPATH_IN_PROGRESS && before.slot != offpath_op::kQueued;
    const uint32_t name = under_way              ? before.slot.load()
                          : status == OFFPATH_OK ? tasks::kEndedWell
                                                 : tasks::kEndedBadly;
    memcpy(&op.record[op.after_offset + i * sizeof(name)], &name, sizeof(name));
  }
}

void offpath_session::release_after(offpath_op& op) {
  for (offpath_op* before : op.after) --before->pins;
  op.after.clear();
}

void offpath_session::take_result(offpath_op& op) const {
  if (op.record.size() < sizeof(tasks::ResultRecord)) return;
  tasks::ResultRecord shared;
  memcpy(&shared, at<uint8_t>(op.record_offset), sizeof(shared));
  shared.text[sizeof(shared.text) - 1] = '\0';
  op.result.code = shared.code;
  op.result.signal = shared.signal;
  op.result.executor = shared.executor;
  op.result.run_ns = shared.run_ns;
  memcpy(op.result.text, shared.text, sizeof(op.result.text));
  op.function_number = shared.function;
}

bool offpath_session::is_empty() const {
  const bool has_file = std::find(file_numbers.begin(), file_numbers.end(), true) != file_numbers.end();
  return stays == 0 && teams.empty() && windows.empty() && !has_file && outstanding == 0 && queue.empty();
}

namespace {
bool uses(const offpath_op& op, uint64_t address, uint64_t bytes) {
  if (op.kind != OpKind::task || op.status.load(std::memory_order_relaxed) != OFFPATH_IN_PROGRESS) return false;
  tasks::TaskRecord head;
  memcpy(&head, &op.record[sizeof(tasks::ResultRecord)], sizeof(head));
  for (uint32_t i = 0; i < head.ranges_count; ++i) {
    tasks::RangeRecord range;
    memcpy(&range, &op.record[sizeof(tasks::ResultRecord) + sizeof(head) + i * sizeof(range)], sizeof(range));
    if (range.address < address + bytes && address < range.address + range.bytes) return true;
  }
  return false;
}
}  // namespace

bool offpath_session::fail_users(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return false;  // none of ours
  bool any = false;
  const auto look = [&](offpath_op& op) {
    if (uses(op, address, bytes)) op.memory_freed = any = true;
  };
  for_each_posted(look);
  for (offpath_op* op : successor->under_way()) look(*op);
  return any;
}

namespace {

// Of one task: what it writes overlaps with nothing else of it.
bool overlap(std::vector<tasks::RangeRecord> ranges) {
  std::erase_if(ranges, [](const auto& range) { return range.bytes == 0; });
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  uint64_t end = 0, written_end = 0;  // of those before
  for (const auto& range : ranges) {
    const bool writes = (range.access & OFFPATH_TASK_OUT) != 0;
    if (range.address < written_end || (writes && range.address < end)) return true;
    end = std::max(end, range.address + range.bytes);
    if (writes) written_end = std::max(written_end, range.address + range.bytes);
  }
  return false;
}

bool describe(const offpath_session& session, const offpath_task_params_t& params, tasks::Task& task) {
  const bool whole =
      params.struct_bytes == sizeof(params) && (params.flags & ~uint32_t{OFFPATH_TASK_STAYS_HOME}) == 0 &&
      params.reserved == 0 && params.function != nullptr && params.function->session == &session &&
      (params.argument != nullptr || params.argument_bytes == 0) &&
      (params.ranges != nullptr || params.ranges_count == 0) && (params.after != nullptr || params.after_count == 0) &&
      params.argument_bytes <= OFFPATH_TASK_ARGUMENT_MAX_BYTES && params.ranges_count <= OFFPATH_TASK_RANGES_MAX &&
      params.after_count <= OFFPATH_TASK_AFTER_MAX;
  if (!whole) return false;
  task.function = params.function->number;
  task.priority = params.priority;
  task.flags = params.flags | (session.tasks_stay_home ? OFFPATH_TASK_STAYS_HOME : 0);
  task.limit_ns = params.limit_ns;
  task.cost_ns = params.cost_ns;
  task.deadline_ns = params.deadline_ns;
  const auto* argument = static_cast<const uint8_t*>(params.argument);
  task.argument.assign(argument, argument + params.argument_bytes);
  task.ranges.reserve(params.ranges_count);
  for (uint32_t i = 0; i < params.ranges_count; ++i) {
    const offpath_task_range_t& range = params.ranges[i];
    task.ranges.push_back({reinterpret_cast<uint64_t>(range.address), range.bytes, range.access, range.version});
    if (!tasks::is_whole(task.ranges.back())) return false;
  }
  for (uint32_t i = 0; i < params.after_count; ++i) {
    if (params.after[i] == nullptr || params.after[i]->session != &session) return false;
  }
  task.after.assign(params.after_count, tasks::kEndedWell);  // named when it is submitted
  return task.ranges.size() < 2 || !overlap(task.ranges);
}

}  // namespace

extern "C" {

offpath_status_t offpath_task_submit(offpath_session_t* session, const offpath_task_params_t* params,
                                     offpath_op_t** out) {
  if (session == nullptr || params == nullptr || out == nullptr) return OFFPATH_ERR_ARGUMENT;
  ErrnoGuard guard;
  *out = nullptr;
  if (!session->mine()) return OFFPATH_ERR_STATE;
  tasks::Task task;
  if (!describe(*session, *params, task)) return OFFPATH_ERR_ARGUMENT;
  auto op = std::make_unique<offpath_op>(session->own, OpKind::task, params->function->name.c_str());
  op->record = tasks::encode(task, &op->after_offset);
  std::lock_guard lock(session->mutex);
  op->sequence = session->next_task++;
  return session->post_after(std::move(op), std::span(params->after, params->after_count), out);
}

offpath_status_t offpath_team_after(offpath_team_t* team, offpath_op_t* const* after, uint32_t after_count) {
  if (team == nullptr || (after == nullptr && after_count > 0) || after_count > OFFPATH_TASK_AFTER_MAX)
    return OFFPATH_ERR_ARGUMENT;
  ErrnoGuard guard;
  offpath_session& session = *team->session;
  if (!session.mine()) return OFFPATH_ERR_STATE;
  for (const offpath_op_t* op : std::span(after, after_count)) {
    if (op == nullptr || op->session != &session) return OFFPATH_ERR_ARGUMENT;
  }
  if (after_count == 0) return OFFPATH_OK;
  auto op = std::make_unique<offpath_op>(*team, OpKind::gate, "what comes before");
  op->record = tasks::encode_gate(after_count, &op->after_offset);
  std::lock_guard lock(session.mutex);
  const offpath_status_t status = session.post_after(std::move(op), std::span(after, after_count), nullptr);
  if (status == OFFPATH_OK) ++team->gates;
  return status;
}

offpath_status_t offpath_task_cancel(offpath_op_t* op) {
  if (op == nullptr || op->kind != OpKind::task) return OFFPATH_ERR_ARGUMENT;
  ErrnoGuard guard;
  offpath_session& session = *op->session;
  if (!session.mine()) return OFFPATH_ERR_STATE;
  std::lock_guard lock(session.mutex);
  if (session.settle(*op) != OFFPATH_IN_PROGRESS) return OFFPATH_OK;
  if (op->again != nullptr) return offpath_task_cancel(op->again.get());
  if (op->handed_on || op->slot == offpath_op::kQueued) {
    session.finish(*op, OFFPATH_ERR_CANCELLED);
    return OFFPATH_OK;
  }
  auto word = std::make_unique<offpath_op>(session.own, OpKind::task_cancel, "cancelling of a task");
  word->address = op->slot;
  word->bytes = op->sequence;
  return session.post(std::move(word), nullptr);
}

offpath_status_t offpath_task_result(offpath_op_t* op, offpath_task_result_t* result) {
  if (op == nullptr || result == nullptr || result->struct_bytes != sizeof(*result) || op->kind != OpKind::task)
    return OFFPATH_ERR_ARGUMENT;
  if (op->status.load(std::memory_order_acquire) == OFFPATH_IN_PROGRESS) return OFFPATH_ERR_STATE;
  *result = op->result;
  result->struct_bytes = sizeof(*result);
  return OFFPATH_OK;
}

}  // extern "C"
