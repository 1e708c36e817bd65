// SPDX-License-Identifier: BSD-3-Clause
// The way of a task: its memory is copied to the board's room where it is not shared, it is put on the board, its result
// is taken off, and what it has written is copied back.
#include "service/tasks/tasks.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::service {

using base::Status;
using tasks::Entry;
using tasks::EntryKind;
using tasks::Reach;
using tasks::State;
using tasks::Task;

namespace {
constexpr uint64_t kCopyAtOnce = 4 << 20;  // then the worker looks at the rest of its work

// Of a plate: the argument, and behind it the ranges.
uint64_t argument_bytes(const Task& task) { return (task.argument.size() + 63) / 64 * 64; }
uint64_t plate_bytes(const Task& task) { return argument_bytes(task) + task.ranges.size() * sizeof(Reach); }
}  // namespace

bool Tasks::feed() {
  bool any = false;
  while (!queued_.empty() && !free_entries_.empty() && board_->has_room()) {
    Job& job = *queued_.begin()->second;
    const Staged staged = stage(job);
    if (staged == Staged::later) break;
    any = true;
    if (staged == Staged::never) continue;
    queued_.erase(queued_.begin());
    if (job.pieces.empty()) {
      put_on_board(job);
    } else {
      job.stage = Stage::copied_in;
      copying_.push_back(&job);
    }
  }
  return any;
}

// Gives it an entry, and room for its argument and for what is not shared. later: there is none now.
Tasks::Staged Tasks::stage(Job& job) {
  Task& task = job.task;
  const auto home = homes_.find(job.client);
  const uint64_t needed = plate_bytes(task);
  const auto take_back = [&] {
    release_room(job);
    if (outstanding_ > 0) return Staged::later;
    end(job, {Status::error(OFFPATH_ERR_NO_MEMORY,
                            "the task needs more room for copies of its ranges than there is. Share the memory "
                            "(offpath_memory_allocate), or raise OFFPATH_TASK_ROOM_BYTES")});
    return Staged::never;
  };
  if (needed > kPlateBytes) {
    const auto plate = room_->allocate(needed);
    if (!plate) return take_back();
    job.plate = *plate;
  }
  std::vector<Reach> reaches;
  reaches.reserve(task.ranges.size());
  for (uint32_t i = 0; i < task.ranges.size(); ++i) {
    const tasks::RangeRecord& range = task.ranges[i];
    const uint64_t offset = range.address - home->second.address;
    if (range.address >= home->second.address && offset <= home->second.bytes &&
        range.bytes <= home->second.bytes - offset) {
      reaches.push_back({job.client, offset, range.bytes, range.access, 0});
      continue;
    }
    const auto place = room_->allocate(range.bytes);
    if (!place) return take_back();
    job.pieces.push_back({i, *place});
    reaches.push_back({0, *place, range.bytes, range.access, 0});
  }
  job.entry = free_entries_.back();
  free_entries_.pop_back();
  ++outstanding_;
  on_board_[job.entry] = &job;
  Entry& entry = board_->entry(job.entry);
  const uint64_t plate = job.plate != 0 ? job.plate : plates_[job.entry];
  const uint64_t reaches_at = plate + argument_bytes(task);
  if (!task.argument.empty())
    memcpy(board_->room(plate, task.argument.size()), task.argument.data(), task.argument.size());
  if (!reaches.empty())
    memcpy(board_->room(reaches_at, reaches.size() * sizeof(Reach)), reaches.data(), reaches.size() * sizeof(Reach));
  entry.kind = static_cast<uint32_t>(job.kind);
  entry.function = task.function;
  entry.ranges_count = static_cast<uint32_t>(reaches.size());
  entry.argument = plate;
  entry.argument_bytes = task.argument.size();
  entry.ranges = reaches_at;
  return Staged::yes;
}

void Tasks::put_on_board(Job& job) {
  job.stage = Stage::posted;
  Entry& entry = board_->entry(job.entry);
  entry.cancelled.store(0, std::memory_order_relaxed);
  entry.status = OFFPATH_ERR_INTERNAL;
  entry.begun_ns.store(0, std::memory_order_relaxed);
  entry.word.store(tasks::word_of(State::ready), std::memory_order_release);
  if (board_->post(job.entry)) {
    ++posted_;
  } else {
    take_away(job, Status::error(OFFPATH_ERR_NO_SERVICE, "no executor takes tasks"));
  }
}

bool Tasks::copy() {
  uint64_t budget = kCopyAtOnce;
  bool any = false;
  while (!copying_.empty() && budget > 0) {
    Job& job = *copying_.front();
    if (job.stage == Stage::copied_in && !board_->has_room()) break;
    any = true;
    if (!copy_some(job, budget)) break;
    copying_.pop_front();
    if (job.stage == Stage::copied_in && job.end.status.ok()) {
      put_on_board(job);
    } else {
      end(job, job.end);
    }
  }
  return any;
}

// True: all was copied, or it failed.
bool Tasks::copy_some(Job& job, uint64_t& budget) {
  const bool in = job.stage == Stage::copied_in;
  const uint32_t wanted = in ? OFFPATH_TASK_IN : OFFPATH_TASK_OUT;  // bits of the access
  for (; job.piece < job.pieces.size(); ++job.piece, job.copied = 0) {
    const Piece& piece = job.pieces[job.piece];
    const tasks::RangeRecord& range = job.task.ranges[piece.range];
    if ((range.access & wanted) == 0) continue;
    while (job.copied < range.bytes) {
      if (budget == 0) return false;
      const uint64_t bytes = std::min(budget, range.bytes - job.copied);
      uint8_t* here = board_->room(piece.place + job.copied, bytes);
      const auto outcome = in ? job.memory->read(here, range.address + job.copied, bytes)
                              : job.memory->write(range.address + job.copied, here, bytes);
      if (!outcome.ok()) {
        job.end.status = Status::error(
            OFFPATH_ERR_MEMORY_FAULT, "range %u of the task, 0x%llx + %llu bytes, is not accessible memory",
            piece.range, static_cast<unsigned long long>(range.address), static_cast<unsigned long long>(range.bytes));
        return true;
      }
      job.copied += bytes;
      budget -= bytes;
    }
  }
  job.piece = 0;
  job.copied = 0;
  return true;
}

bool Tasks::collect() {
  if (outstanding_ == 0 || board_->header().finished.load(std::memory_order_relaxed) == 0) return false;
  uint64_t finished = board_->take_finished();
  while (finished != 0) {
    const auto index = static_cast<uint32_t>(__builtin_ctzll(finished));
    finished &= finished - 1;
    Job* job = on_board_[index];  // user code may have set the bit
    if (job == nullptr || job->stage != Stage::posted || job->taken_away) continue;
    const uint32_t word = board_->entry(index).word.load(std::memory_order_acquire);
    if (tasks::state_of(word) == State::done) take_result(*job);
  }
  return true;
}

void Tasks::take_result(Job& job) {
  Entry& entry = board_->entry(job.entry);
  const uint32_t number = tasks::executor_of(entry.word.load(std::memory_order_acquire));
  TaskEnd result;
  if (number < executors_->count()) {
    executors_->note_use(number);
    result.executor = static_cast<uint32_t>(std::max(0, executors_->process(number)));
  }
  char text[sizeof(entry.text)];
  memcpy(text, entry.text, sizeof(text));
  text[sizeof(text) - 1] = '\0';
  const auto status = base::known_code(entry.status);
  if (status != OFFPATH_OK) {
    const bool by_function = status == OFFPATH_ERR_TASK;
    const std::string name = functions_[job.task.function].symbol;
    result.status = by_function ? Status::error(status, "function '%.60s' %s", name.c_str(), text)
                                : Status::error(status, "%s", text);
  }
  result.code = entry.code;
  result.run_ns = entry.run_ns;
  result.function = job.task.function;
  const auto is_result = [&](const Piece& piece) {
    return (job.task.ranges[piece.range].access & OFFPATH_TASK_OUT) != 0;
  };
  if (result.status.ok() && job.client != 0 && std::any_of(job.pieces.begin(), job.pieces.end(), is_result)) {
    job.stage = Stage::copied_out;
    job.end = result;
    copying_.push_back(&job);
  } else {
    end(job, result);
  }
}

void Tasks::release(Job& job) {
  queued_.erase({key_of(job), &job});
  if (job.task.limit_ns > 0 || job.kill_at_ns != 0) --timed_;
  if (job.stage == Stage::queued) return;
  board_->entry(job.entry).word.store(tasks::word_of(State::free), std::memory_order_release);
  on_board_[job.entry] = nullptr;
  free_entries_.push_back(job.entry);
  --outstanding_;
  release_room(job);
}

void Tasks::release_room(Job& job) {
  if (job.plate != 0) room_->release(job.plate);
  for (const Piece& piece : job.pieces) room_->release(piece.place);
  job.plate = 0;
  job.pieces.clear();
}

}  // namespace offpath::service
