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

namespace {
// Bits of an access.
constexpr uint32_t kOut = OFFPATH_TASK_OUT;
constexpr uint32_t kReport = OFFPATH_TASK_REPORT & ~OFFPATH_TASK_OUT;
}  // namespace

bool Tasks::feed() {
  bool any = false;
  while (!queued_.empty() && shop_->entries.any_free()) {
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

// Gives it an entry, and room for what is not shared. later: there is none now.
Tasks::Staged Tasks::stage(Job& job) {
  const auto found = homes_.find(job.client);
  const Home nowhere, &home = found == homes_.end() || job.on_copies ? nowhere : found->second;
  std::vector<Reach> reaches;
  reaches.reserve(job.task.ranges.size());
  bool fits = true;
  for (uint32_t i = 0; fits && i < job.task.ranges.size(); ++i) {
    const tasks::RangeRecord& range = job.task.ranges[i];
    const uint64_t offset = range.address - home.address;
    Reach reach{0, range.address, range.bytes, range.access, 0};  // as another worker's lie
    if (range.address >= home.address && offset <= home.bytes && range.bytes <= home.bytes - offset) {
      reach.client = job.client;
      reach.offset = offset;
    } else if (job.guest == 0) {
      const auto place = find_place(job, i);
      fits = place.has_value();
      reach.offset = place.value_or(0);
    }
    reaches.push_back(reach);
  }
  if (fits && shop_->entries.take(job, reaches)) return Staged::yes;
  leave_board(job);
  if (job.on_copies) {  // in place there is room for it; then its result comes from here
    job.on_copies = false;
    give_up_away(job);
    return stage(job);
  }
  if (any_on_board() || mover_->holds_room()) return Staged::later;
  end(job, {Status::error(OFFPATH_ERR_NO_MEMORY,
                          "the task needs more room for copies of its ranges than there is. Share the memory "
                          "(offpath_memory_allocate), or raise OFFPATH_TASK_ROOM_BYTES")});
  return Staged::never;
}

std::optional<uint64_t> Tasks::find_place(Job& job, uint32_t index) {
  Room& room = shop_->room;
  const tasks::RangeRecord& range = job.task.ranges[index];
  const Room::Name name{job.client, range.address, range.bytes, range.version};
  Room::Kept* kept = range.version != 0 ? room.use(name) : nullptr;
  if (kept != nullptr && kept->filled) {
    job.pieces.push_back({index, kept->place, kept});
    return kept->place;
  }
  const bool twice = std::any_of(job.pieces.begin(), job.pieces.end(),
                                 [&](const Room::Piece& piece) { return kept != nullptr && piece.kept == kept; });
  if (kept != nullptr && !twice) return std::nullopt;
  const auto place = room.reserve(range.bytes);
  if (!place) return std::nullopt;
  // The second in one task is a copy of its own.
  job.pieces.push_back({index, *place, range.version != 0 && !twice ? &room.keep(name, *place) : nullptr});
  return place;
}

void Tasks::put_on_board(Job& job) {
  if (!shop_->entries.post(job)) take_away(job, Status::error(OFFPATH_ERR_NO_SERVICE, "no executor takes tasks"));
}

// What of it is to be copied; it has no copy if that is nothing.
void Tasks::copy(Job& job, Stage stage, uint32_t wanted) {
  std::vector<Copies::Part> parts;
  for (const Room::Piece& piece : job.pieces) {
    const tasks::RangeRecord& range = job.task.ranges[piece.range];
    const bool is_there = piece.kept != nullptr && piece.kept->filled;  // another task has copied it
    if ((range.access & wanted) != 0 && range.bytes > 0 && !is_there)
      parts.push_back({range.address, range.bytes, shop_->room.at(piece.place, range.bytes), piece.range});
  }
  if (parts.empty()) return;
  job.stage = stage;
  const auto way = stage == Stage::copied_in ? Copies::Way::in : Copies::Way::out;
  job.copy = copies_.begin(homes_.at(job.client).memory, way, std::move(parts),
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
  for (const Room::Piece& piece : job.pieces) {
    if (piece.kept != nullptr) piece.kept->filled = true;
  }
  job.stage = Stage::copied;
  copied_.push_back(&job);
}

bool Tasks::post_copied() {
  bool any = false;
  while (!copied_.empty() && shop_->room.board().has_room()) {
    Job& job = *copied_.front();
    copied_.pop_front();
    put_on_board(job);
    any = true;
  }
  return any;
}

bool Tasks::collect() {
  return shop_->entries.each_done([this](Job& job) {
    if (!job.taken_away) take_result(job);
  });
}

void Tasks::take_result(Job& job) {
  const Entry& entry = shop_->entries.of(job);
  const uint32_t number = tasks::executor_of(entry.word.load(std::memory_order_acquire));
  TaskEnd result;
  if (number < executors()) {
    shop_->executors.note_use(number);
    result.executor = static_cast<uint32_t>(std::max(0, shop_->executors.process(number)));
  }
  char text[sizeof(entry.text)];
  memcpy(text, entry.text, sizeof(text));
  text[sizeof(text) - 1] = '\0';
  const auto status = base::known_code(entry.status);
  if (status != OFFPATH_OK) {
    const bool by_function = status == OFFPATH_ERR_TASK;
    const bool told_to_stop = by_function && job.kill_at_ns != 0;
    const std::string& name = shop_->functions[job.task.function].symbol;
    result.status = told_to_stop  ? Status::error(OFFPATH_ERR_CANCELLED, "the task was cancelled, and stopped")
                    : by_function ? Status::error(status, "function '%.60s' %s", name.c_str(), text)
                                  : Status::error(status, "%s", text);
  }
  result.code = entry.code;
  result.run_ns = entry.run_ns;
  if (job.kind == EntryKind::run) {
    ++counts_.executed;
    counts_.run_ns += result.run_ns;
    if (status == OFFPATH_OK) shop_->functions.note_run(job.task, result.run_ns);
  }
  result.function = job.task.function;
  const uint32_t seen = status == OFFPATH_OK ? kOut : status == OFFPATH_ERR_TASK ? kReport : 0;
  if (seen != 0 && job.client != 0) copy(job, Stage::copied_out, seen);
  if (job.copy == 0) return end(job, result);
  job.end = result;
}

}  // namespace offpath::service
