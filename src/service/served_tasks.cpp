// SPDX-License-Identifier: BSD-3-Clause
// Tasks of a client: read from its segment, kept until what they come after is done, and their results written back.
#include "base/log.hpp"
#include "service/served_client.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>

namespace offpath::service {

using base::Status;
using session::Slot;
using tasks::Order;

// The service has mapped it, and keeps no descriptor; the client has one. Without it everything is copied, as from a host.
Home ServedClient::make_home(uint64_t descriptor) const {
  Home home{memory_, nullptr, 0, 0};
  if (reflection_ != nullptr) return home;
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/fd/%llu", static_cast<int>(process_),
           static_cast<unsigned long long>(descriptor));
  auto file = std::make_shared<base::Fd>(open(path, O_RDWR | O_CLOEXEC));
  struct stat about {};
  const int seals = file->valid() ? fcntl(file->get(), F_GET_SEALS) : -1;
  const bool same = fstat(file->get(), &about) == 0 && static_cast<uint64_t>(about.st_size) == view_.mapping()->bytes();
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || !same) {
    base::log_write(base::LogLevel::warn, "client %llu: executors cannot map its memory, so tasks work on copies",
                    static_cast<unsigned long long>(id_));
    return home;
  }
  home.file = std::move(file);
  home.address = view_.shared_address();
  home.bytes = view_.shared_bytes();
  return home;
}

Status ServedClient::register_function(uint32_t index, const Slot& slot) {
  auto function = tasks::decode_function(view_.record(slot));
  if (!function.ok()) return function.status();
  const Home home = here_->tasks.knows(id_) ? Home{} : make_home(slot.address);
  return here_->tasks.register_function(id_, index, home, std::move(function.value()));
}

Status ServedClient::begin_task(uint32_t index, const Slot& slot) {
  if (order_.is_under_way(index)) return Status::error(OFFPATH_ERR_ARGUMENT, "the slot of a task is used twice");
  auto task = tasks::decode_task(view_.record(slot));
  if (!task.ok()) {
    order_.begin_other(index);
    return task.status();
  }
  task_numbers_[index] = slot.sequence;
  std::vector<Order::Range> ranges;
  ranges.reserve(task->ranges.size());
  for (const tasks::RangeRecord& range : task->ranges)
    ranges.push_back({range.address, range.bytes, (range.access & OFFPATH_TASK_OUT) != 0});
  const Order::Begun begun = order_.begin(index, task->after, ranges);
  switch (begun.verdict) {
    case Order::Verdict::ready:
      return start_task(index, std::move(task.value()));
    case Order::Verdict::waits:
      waiting_tasks_[index] = std::move(task.value());
      return {};
    case Order::Verdict::fails:
      return Status::error(OFFPATH_ERR_DEPENDENCE,
                           "an operation that the task comes after has failed, so it was not run");
    case Order::Verdict::overlaps:
      return Status::error(
          OFFPATH_ERR_ARGUMENT,
          "the task writes memory of task #%llu, or reads what that one writes, and they are not ordered (the "
          "result would depend on which is first). Name that one in 'after'",
          static_cast<unsigned long long>(task_numbers_[begun.other]));
    case Order::Verdict::nonsense:
      break;
  }
  return Status::error(OFFPATH_ERR_ARGUMENT, "a task comes after an operation that is none");
}

Status ServedClient::start_task(uint32_t index, tasks::Task task) {
  const Status status = here_->tasks.submit(id_, index, std::move(task));
  if (status.ok()) session::SegmentView::note_start(view_.slot(index));
  return status;
}

void ServedClient::cancel_task(const Slot& slot) {
  const uint64_t index = slot.address, number = slot.bytes;  // the client may change them
  if (index >= session::kSlotCount || !order_.is_under_way(static_cast<uint32_t>(index)) ||
      task_numbers_[index] != number)
    return;
  const auto task = static_cast<uint32_t>(index);
  if (waiting_tasks_.erase(task) > 0) {
    on_task_ended(task, {Status::error(OFFPATH_ERR_CANCELLED, "the task was cancelled")});
  } else {
    here_->tasks.cancel(id_, task);
  }
}

void ServedClient::on_task_ended(uint32_t index, const TaskEnd& end) {
  show_task_end(index, end);
  const auto kind =
      static_cast<session::OpKind>(view_.slot(index).kind);  // the client may change it: then it counts wrongly
  const bool is_task = kind != session::OpKind::function;
  const bool told =
      end.status.ok() || end.status.code() == OFFPATH_ERR_CANCELLED || end.status.code() == OFFPATH_ERR_DEPENDENCE;
  if (!told)
    base::log_write(base::LogLevel::warn, "client %llu: %s", static_cast<unsigned long long>(id_), end.status.text());
  if (is_task) {
    finish(index, end.status.code());
  } else {
    view_.finish(index, end.status.code(), session::Counted::no);
  }
}

void ServedClient::show_task_end(uint32_t index, const TaskEnd& end) {
  auto* place = view_.bytes_at(view_.slot(index).record, sizeof(tasks::ResultRecord));
  if (place == nullptr) return;
  tasks::ResultRecord result{end.code, end.signal, end.executor, end.function, end.run_ns, {}};
  static_assert(sizeof(offpath_error_t::text) < sizeof(result.text));
  memcpy(result.text, end.status.text(), strlen(end.status.text()) + 1);
  memcpy(place, &result, sizeof(result));
}

void ServedClient::note_end(uint32_t index, bool well) {
  order_.end(index, well, decided_);
  if (settling_) return;
  settling_ = true;
  while (!decided_.empty()) {
    const Order::Decided next = decided_.back();
    decided_.pop_back();
    gates_.open(next.slot, next.may_begin);
    decide_task(next);
    files_->decide(next);
  }
  settling_ = false;
}

void ServedClient::decide_task(const Order::Decided& decided) {
  auto waiting = waiting_tasks_.extract(decided.slot);
  if (waiting.empty()) return;
  const Status status = decided.may_begin
                            ? start_task(decided.slot, std::move(waiting.mapped()))
                            : Status::error(OFFPATH_ERR_DEPENDENCE,
                                            "an operation that the task comes after has failed, so it was not run");
  if (!status.ok()) on_task_ended(decided.slot, {status});
}

}  // namespace offpath::service
