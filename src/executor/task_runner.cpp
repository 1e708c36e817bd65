// SPDX-License-Identifier: BSD-3-Clause
#include "executor/task_runner.hpp"

#include "base/clock.hpp"
#include "base/passing.hpp"
#include "device/futex.hpp"
#include "executor/last_words.hpp"
#include "executor/task_words.hpp"
#include "session/layout.hpp"
#include "session/link.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

namespace offpath::executor {

using base::Fd;
using base::Result;
using base::Status;
using tasks::Entry;

TaskRunner::~TaskRunner() {
  for (const auto& [client, mapping] : clients_) munmap(mapping.data, mapping.bytes);
}

Status TaskRunner::open() {
  auto board = tasks::Board::adopt(Fd(options_.board));
  if (!board.ok()) return board.status();
  board_ = std::make_unique<tasks::Board>(std::move(board.value()));
  functions_ = std::make_unique<TaskFunctions>(*board_);
  if (options_.number >= tasks::kMaxExecutors)
    return Status::error(OFFPATH_ERR_ARGUMENT, "no executor has that number");
  leave_words_on_board(board_->header().last_words[options_.number]);
  if (options_.memory_bytes > 0) {
    const rlimit limit{options_.memory_bytes, options_.memory_bytes};
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
      return Status::system_error(OFFPATH_ERR_ARGUMENT, errno, "cannot limit memory");
  }
  return {};
}

void TaskRunner::serve() {
  using Clock = std::chrono::steady_clock;
  auto last_busy = Clock::now();
  while (true) {
    const uint32_t seen = board_->header().posted.load(std::memory_order_seq_cst);
    if (const auto index = board_->take(options_.number)) {
      run(*index);
      last_busy = Clock::now();
      continue;
    }
    const bool alone =
        board_->header().worker_core.load(std::memory_order_relaxed) != static_cast<uint32_t>(sched_getcpu() + 1);
    if (options_.spin.count() > 0 && alone && Clock::now() - last_busy < options_.spin) {
      for (int i = 0; i < 64 && !board_->has_news(seen); ++i) device::relax();
      continue;
    }
    while (hear()) {
    }
    if (!socket_.valid()) return;
    board_->sleep(seen);
    last_busy = Clock::now();
  }
}

// What the worker says of its clients. False: nothing now, or never again.
bool TaskRunner::hear() {
  tasks::ClientMemory said{};
  Fd file;
  const ssize_t got = base::receive_passing(socket_.get(), &said, sizeof(said), {&file, 1}, MSG_DONTWAIT).bytes;
  if (got == 0 || (got < 0 && errno != EAGAIN)) socket_.reset();
  if (got != sizeof(said)) return false;
  forget(said.client);
  if (!file.valid()) return true;
  // Not the part in which client and service talk to each other.
  void* data =
      mmap(nullptr, said.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), session::kSegmentBytes);
  if (data != MAP_FAILED) clients_[said.client] = {static_cast<uint8_t*>(data), said.bytes};
  return true;
}

void TaskRunner::forget(uint64_t client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  munmap(found->second.data, found->second.bytes);
  clients_.erase(found);
}

Result<offpath_task_range_t> TaskRunner::reach(const tasks::Reach& range) {
  uint8_t* data = nullptr;
  if (range.client == 0) {
    data = board_->room(range.offset, range.bytes);
  } else {
    auto found = clients_.find(range.client);
    while (found == clients_.end() && hear()) found = clients_.find(range.client);
    const bool inside = found != clients_.end() && range.offset <= found->second.bytes &&
                        range.bytes <= found->second.bytes - range.offset;
    if (inside) data = found->second.data + range.offset;
  }
  if (data == nullptr)
    return Status::error(OFFPATH_ERR_MEMORY_FAULT, "a range of the task cannot be reached by its executor");
  return offpath_task_range_t{data, range.bytes, range.access, 0};
}

Status TaskRunner::call(Entry& entry, int32_t& code, uint64_t& run_ns) {
  const auto kind = static_cast<tasks::EntryKind>(entry.kind);
  const auto function = functions_->find(entry.function);
  if (!function.ok() || kind == tasks::EntryKind::load) return function.status();
  const uint32_t count = entry.ranges_count;
  if (count > OFFPATH_TASK_RANGES_MAX) return Status::error(OFFPATH_ERR_INTERNAL, "a task has too many ranges");
  const uint8_t* reaches = count == 0 ? nullptr : board_->room(entry.ranges, count * sizeof(tasks::Reach));
  const uint64_t argument_bytes = entry.argument_bytes;
  const uint8_t* argument = board_->room(argument_bytes == 0 ? tasks::kRoomOffset : entry.argument, argument_bytes);
  if (argument == nullptr || (count > 0 && reaches == nullptr))
    return Status::error(OFFPATH_ERR_INTERNAL, "a task's argument does not lie on the board");
  std::vector<offpath_task_range_t> ranges;
  ranges.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    tasks::Reach one;
    memcpy(&one, reaches + i * sizeof(one), sizeof(one));
    const auto range = reach(one);
    if (!range.ok()) return range.status();
    ranges.push_back(range.value());
  }
  char text[sizeof(entry.text)] = "";
  const offpath_task_t task{sizeof(task),   count,         argument,
                            argument_bytes, ranges.data(), reinterpret_cast<const volatile uint32_t*>(&entry.cancelled),
                            text,           sizeof(text)};
  const uint64_t begun_ns = base::clock_ns();
  Status status;
  try {
    code = function->call(&task);
    text[sizeof(text) - 1] = '\0';
    if (code != 0)
      status = Status::error(OFFPATH_ERR_TASK, text[0] == '\0' ? "returned %d" : "returned %d: %s", code, text);
  } catch (const std::exception& problem) {
    status = Status::error(OFFPATH_ERR_TASK, "ended by an exception: %.200s", problem.what());
  } catch (...) {
    status = Status::error(OFFPATH_ERR_TASK, "ended by an exception");
  }
  run_ns = base::clock_ns() - begun_ns;
  return status;
}

void TaskRunner::run(uint32_t index) {
  Entry& entry = board_->entry(index);
  entry.begun_ns.store(base::clock_ns(), std::memory_order_release);
  int32_t code = 0;
  uint64_t run_ns = 0;
  const Status status = call(entry, code, run_ns);
  if (is_forked_child()) _exit(0);  // the entry is its parent's
  entry.status = status.code();
  entry.code = code;
  entry.run_ns = run_ns;
  if (status.ok()) {
    entry.text[0] = '\0';
  } else {
    snprintf(entry.text, sizeof(entry.text), "%s", status.text());
  }
  if (!board_->finish(index, options_.number)) _exit(0);  // taken away: the worker waits for this end
  if (board_->header().worker_sleeps.load(std::memory_order_seq_cst) != 0 &&
      board_->header().worker_sleeps.exchange(0, std::memory_order_seq_cst) != 0) {
    ring_bell();
  }
}

void TaskRunner::ring_bell() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(bell_.get(), &one, sizeof(one));
}

}  // namespace offpath::executor
