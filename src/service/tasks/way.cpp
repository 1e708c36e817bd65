// SPDX-License-Identifier: BSD-3-Clause
// The way of a task: its memory is copied to the board's room where it is not shared, it is put on the board, its result
// is taken off, and what it has written is copied back.
#include "service/tasks/tasks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace offpath::service {

using base::Status;
using tasks::Entry;
using tasks::EntryKind;
using tasks::Reach;
using tasks::State;
using tasks::Task;

namespace {
// Bits of an access.
constexpr uint32_t kOut = OFFPATH_TASK_OUT;
constexpr uint32_t kReport = OFFPATH_TASK_REPORT & ~OFFPATH_TASK_OUT;

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
    copy(job, Stage::copied_in, OFFPATH_TASK_IN);
    if (job.copy == 0) put_on_board(job);
  }
  return any;
}

// Gives it an entry, and room for its argument and for what is not shared. later: there is none now.
Tasks::Staged Tasks::stage(Job& job) {
  Task& task = job.task;
  const auto found = homes_.find(job.client);
  const Home nowhere, &home = found == homes_.end() || job.on_copies ? nowhere : found->second;
  const uint64_t needed = plate_bytes(task);
  const auto take_back = [&] {
    release_room(job);
    if (job.on_copies) {  // in place there is room for it; then its result comes from here
      job.on_copies = false;
      if (const uint64_t away = std::exchange(job.away, 0); away != 0) mover_->on_over(away);
      return stage(job);
    }
    if (outstanding_ > 0 || mover_->holds_room()) return Staged::later;
    end(job, {Status::error(OFFPATH_ERR_NO_MEMORY,
                            "the task needs more room for copies of its ranges than there is. Share the memory "
                            "(offpath_memory_allocate), or raise OFFPATH_TASK_ROOM_BYTES")});
    return Staged::never;
  };
  if (needed > kPlateBytes) {
    const auto plate = allocate(needed);
    if (!plate) return take_back();
    job.plate = *plate;
  }
  std::vector<Reach> reaches;
  reaches.reserve(task.ranges.size());
  for (uint32_t i = 0; i < task.ranges.size(); ++i) {
    const tasks::RangeRecord& range = task.ranges[i];
    if (job.guest != 0) {
      reaches.push_back({0, range.address, range.bytes, range.access, 0});
      continue;
    }
    const uint64_t offset = range.address - home.address;
    if (range.address >= home.address && offset <= home.bytes && range.bytes <= home.bytes - offset) {
      reaches.push_back({job.client, offset, range.bytes, range.access, 0});
      continue;
    }
    if (!find_place(job, i)) return take_back();
    reaches.push_back({0, job.pieces.back().place, range.bytes, range.access, 0});
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

std::optional<uint64_t> Tasks::allocate(uint64_t bytes) {
  auto place = room_->allocate(bytes);
  while (!place && kept_.drop_one(*room_)) place = room_->allocate(bytes);
  return place;
}

bool Tasks::find_place(Job& job, uint32_t index) {
  const tasks::RangeRecord& range = job.task.ranges[index];
  std::optional<Kept::Name> kept;
  if (range.version != 0) {
    kept = Kept::Name{job.client, range.address, range.bytes, range.version};
    const auto is_same = [&](const Range& piece) { return piece.kept == kept && !piece.is_there; };
    const bool twice =
        std::any_of(job.pieces.begin(), job.pieces.end(), is_same);  // then the second is a copy of its own
    const auto found = twice ? std::nullopt : kept_.use(*kept);
    if (found) {
      if (found->filled) job.pieces.push_back({index, found->place, kept, true});
      return found->filled;
    }
    if (twice) kept.reset();
  }
  const auto place = allocate(range.bytes);
  if (!place) return false;
  if (kept) kept_.add(*kept, *place, *room_);
  job.pieces.push_back({index, *place, kept, false});
  return true;
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

// What of it is to be copied; it has no copy if that is nothing.
void Tasks::copy(Job& job, Stage stage, uint32_t wanted) {
  const bool in = stage == Stage::copied_in;
  std::vector<Copies::Part> parts;
  for (const Range& piece : job.pieces) {
    const tasks::RangeRecord& range = job.task.ranges[piece.range];
    if ((range.access & wanted) != 0 && range.bytes > 0 && !piece.is_there)
      parts.push_back({range.address, range.bytes, board_->room(piece.place, range.bytes), piece.range});
  }
  if (parts.empty()) return;
  job.stage = stage;
  job.copy = copies_.begin(job.memory, in ? Copies::Way::in : Copies::Way::out, std::move(parts),
                           [this, &job](const Status& status, uint32_t range) { on_copied(job, status, range); });
}

void Tasks::on_copied(Job& job, const Status& status, uint32_t range) {
  job.copy = 0;
  if (!status.ok() && job.end.status.ok()) {
    const tasks::RangeRecord& wrong = job.task.ranges[range];
    job.end.status =
        Status::error(status.code() == OFFPATH_ERR_PEER_LOST ? status.code() : OFFPATH_ERR_MEMORY_FAULT,
                      "range %u of the task, 0x%llx + %llu bytes, is not accessible memory", range,
                      static_cast<unsigned long long>(wrong.address), static_cast<unsigned long long>(wrong.bytes));
  }
  if (job.stage == Stage::copied_out || !job.end.status.ok() || job.client == 0) return end(job, job.end);
  for (const Range& piece : job.pieces) {
    if (piece.kept && !piece.is_there) kept_.note_filled(*piece.kept);
  }
  job.stage = Stage::copied;
  copied_.push_back(&job);
}

bool Tasks::post_copied() {
  bool any = false;
  while (!copied_.empty() && board_->has_room()) {
    Job& job = *copied_.front();
    copied_.pop_front();
    put_on_board(job);
    any = true;
  }
  return any;
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
    const bool told_to_stop = by_function && job.kill_at_ns != 0;
    const std::string name = functions_[job.task.function].symbol;
    result.status = told_to_stop  ? Status::error(OFFPATH_ERR_CANCELLED, "the task was cancelled, and stopped")
                    : by_function ? Status::error(status, "function '%.60s' %s", name.c_str(), text)
                                  : Status::error(status, "%s", text);
  }
  result.code = entry.code;
  result.run_ns = entry.run_ns;
  if (job.kind == EntryKind::run) {
    ++counts_.executed;
    counts_.run_ns += result.run_ns;
    if (status == OFFPATH_OK) note_cost(job.task, result.run_ns);
  }
  result.function = job.task.function;
  const uint32_t seen = status == OFFPATH_OK ? kOut : status == OFFPATH_ERR_TASK ? kReport : 0;
  if (seen != 0 && job.client != 0) copy(job, Stage::copied_out, seen);
  if (job.copy == 0) return end(job, result);
  job.end = result;
}

void Tasks::release(Job& job) {
  queued_.erase({key_of(job), &job});
  if (job.task.limit_ns > 0 || job.kill_at_ns != 0) --timed_;
  if (job.stage == Stage::queued) return;
  if (job.stage == Stage::copied) std::erase(copied_, &job);
  leave_board(job);
}

void Tasks::leave_board(Job& job) {
  if (job.entry != tasks::kNoEntry) {
    board_->entry(job.entry).word.store(tasks::word_of(State::free), std::memory_order_release);
    on_board_[job.entry] = nullptr;
    free_entries_.push_back(job.entry);
    job.entry = tasks::kNoEntry;
    --outstanding_;
  }
  release_room(job);
}

void Tasks::release_room(Job& job) {
  if (job.plate != 0) room_->release(job.plate);
  for (const Range& piece : job.pieces) {
    piece.kept ? kept_.release(*piece.kept, !homes_.contains(piece.kept->client), *room_)
               : void(room_->release(piece.place));
  }
  job.plate = 0;
  job.pieces.clear();
}

}  // namespace offpath::service
