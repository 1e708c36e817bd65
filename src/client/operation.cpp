// SPDX-License-Identifier: BSD-3-Clause
// Life of an operation in the session segment: submitted, settled, finished.
#include "base/clock.hpp"
#include "client/session.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace layout = offpath::session;
using layout::OpKind;
using layout::Slot;
using layout::SlotState;

namespace {
constexpr size_t kSpareBytes = 4096;  // longest record whose memory is kept

bool of_executors(const offpath_op& op) { return does(op.kind, layout::kHasResult); }
bool of_file(const offpath_op& op) { return op.kind == OpKind::file_write || op.kind == OpKind::file_read; }
}  // namespace

offpath_op::offpath_op(offpath_team& on, OpKind what, const char* known_as)
    : session(on.session), team(&on), kind(what), name(known_as) {}

void offpath_op::copy_own_blocks() {
  for (const auto& copy : own_copies) memcpy(copy.target, copy.source, copy.bytes);
  own_copies.clear();
}

uint64_t offpath_op::open_offset() const { return record_offset + record.size() - team->size * sizeof(uint32_t); }

// ---- posting ---------------------------------------------------------------------------------------------------

bool offpath_session::hopeless(const offpath_op& op) const {
  if (life.lost) return true;
  if (op.kind == OpKind::remote) return at<uint8_t>(op.team->lost)[op.target] != 0;
  return team_record(*op.team).broken.load(std::memory_order_acquire) != 0;
}

offpath_status_t offpath_session::post(std::unique_ptr<offpath_op> owned, offpath_op** out) {
  offpath_op& op = *owned;
  const bool remote = op.kind == OpKind::remote;
  remote ? reap_unclaimed() : reap_orphans();
  submit_queued();
  if (remote && op.window->keeps && (op.window->given_up || hopeless(op))) return post_kept(std::move(owned), out);
  if (op.in_sequence() || remote) {
    if (hopeless(op)) return OFFPATH_ERR_NOT_STARTED;
    if (!arena.could_hold(op.record.size())) return OFFPATH_ERR_NO_MEMORY;
  }
  const bool goes_on = op.kind == OpKind::task && successor->new_tasks_go_on();
  if (!goes_on && (of_executors(op) || of_file(op) || op.kind == OpKind::gate)) {
    if (life.lost) return OFFPATH_ERR_NOT_STARTED;
    if (!arena.could_hold(op.record.size())) return OFFPATH_ERR_NO_MEMORY;
  }
  if (op.in_sequence()) op.sequence = op.team->next_sequence;
  // Before the service can complete it.
  if (remote) op.sequence = op.window->shared().issued.fetch_add(1, std::memory_order_acq_rel);
  if (!goes_on && (!queue.empty() || !submit(op))) {
    if (outstanding == 0 && queue.empty()) {  // nothing will ever make room
      if (remote) op.window->drop(op.sequence);
      return OFFPATH_ERR_NO_MEMORY;
    }
    queue.push_back(&op);
    if (submitter == nullptr) submitter = std::make_unique<offpath::client::Submitter>(*this);
    submitter->wake();
  }
  ++op.team->unfinished;
  if (op.window != nullptr) ++op.window->unfinished;
  if (op.in_sequence()) ++op.team->next_sequence;
  if (!does(op.kind, layout::kAside)) ++posted_count;
  if (out != nullptr) {
    *out = owned.release();
  } else {
    remote ? unclaimed.push_back(std::move(owned)) : orphans.push_back(std::move(owned));
  }
  if (goes_on) successor->add(op);
  return OFFPATH_OK;
}

// It is over at once.
offpath_status_t offpath_session::post_kept(std::unique_ptr<offpath_op> op, offpath_op** out) {
  op->sequence = op->window->shared().issued.fetch_add(1, std::memory_order_acq_rel);
  op->window->keep(*op, false);
  op->window->drop(op->sequence);
  op->status.store(OFFPATH_ERR_NOT_STARTED, std::memory_order_release);
  if (out != nullptr) *out = op.release();
  return OFFPATH_OK;
}

bool offpath_session::submit(offpath_op& op) {
  if (free_slots.empty()) return false;
  if (!op.record.empty()) {
    op.record_offset = arena.allocate(op.record.size());
    if (op.record_offset == 0) return false;
    if (!op.after.empty()) name_after(op);
    memcpy(at<uint8_t>(op.record_offset), op.record.data(), op.record.size());
  }
  op.slot = free_slots.back();
  by_slot[op.slot] = &op;
  free_slots.pop_back();
  ++outstanding;
  Slot& entry = slot(op.slot);
  entry.kind = static_cast<uint32_t>(op.kind);
  entry.status = OFFPATH_IN_PROGRESS;
  const bool remote = op.kind == OpKind::remote;
  const bool timed = timing.load(std::memory_order_relaxed) && !does(op.kind, layout::kAside);
  entry.flags = op.flags | (timed ? layout::kTimed : 0);
  if (timed) {
    op.times.posted_ns = offpath::base::clock_ns();
    entry.started_ns.store(0, std::memory_order_relaxed);
    entry.first_byte_ns.store(0, std::memory_order_relaxed);
    entry.done_ns.store(0, std::memory_order_relaxed);
    entry.last_peer.store(remote ? op.target : op.team->rank, std::memory_order_relaxed);
  }
  entry.team = op.team->record;
  entry.sequence = remote ? op.window->submitted++ : op.sequence;
  entry.record = op.record_offset;
  entry.record_bytes = static_cast<uint32_t>(op.record.size());
  entry.open = op.in_sequence() ? op.open_offset() : 0;
  entry.window = op.window == nullptr ? 0 : op.window->record;
  entry.address = op.address;
  entry.bytes = op.bytes;
  entry.steps_left.store(0, std::memory_order_relaxed);
  entry.exports_left.store(0, std::memory_order_relaxed);
  entry.state.store(static_cast<uint32_t>(SlotState::posted), std::memory_order_release);
  layout::SegmentHeader& head = header();
  const uint32_t position = head.submitted.load(std::memory_order_relaxed);
  at<layout::Atomic32>(layout::kRingOffset)[position % layout::kSlotCount].store(op.slot, std::memory_order_relaxed);
  head.submitted.store(position + 1, std::memory_order_seq_cst);
  // Many short operations should wake the service once, not each of them: the end of one under way does so, too. Looked at only
  // now: what ended before may have been the last thing to do, and the worker sleeps.
  const bool follows = op.lazy && op.window->completed() < op.sequence;
  if (!follows || ++unrung >= kMaxUnrung) ring();
  return true;
}

void offpath_session::for_each_posted(const std::function<void(offpath_op&)>& look) {
  for (offpath_op* op : by_slot) {
    if (op != nullptr) look(*op);
  }
  const std::vector<offpath_op*> waiting(queue.begin(), queue.end());
  for (offpath_op* op : waiting) look(*op);
}

void offpath_session::submit_queued() {
  while (!queue.empty() && !life.lost && submit(*queue.front())) queue.pop_front();
}

void offpath_session::drain_queue() {
  while (!queue.empty() && !life.lost) {
    const bool alone = outstanding == 0;
    if (submit(*queue.front())) {
      queue.pop_front();
    } else if (alone) {
      finish(*queue.front(), OFFPATH_ERR_NO_MEMORY);  // teams fill the arena: nothing will ever make room
    } else if (!harvest()) {
      return;
    }
  }
}

bool offpath_session::harvest() {
  const uint32_t before = outstanding;
  for (offpath_op* op : by_slot) {
    if (op != nullptr) settle(*op);
  }
  reap_unclaimed();
  reap_orphans();
  return outstanding < before;  // whoever took the result: operations end while this looks at them
}

void offpath_session::reap_orphans() {
  std::erase_if(orphans, [&](const auto& op) { return settle(*op) != OFFPATH_IN_PROGRESS && op->pins == 0; });
}

bool offpath_session::has_gate(const offpath_team& team) {
  if (team.gates > 0) reap_orphans();
  return team.gates > 0;
}

void offpath_session::reap_unclaimed() {
  while (!unclaimed.empty() && settle(*unclaimed.front()) != OFFPATH_IN_PROGRESS) {
    const bool modest = spare.size() < layout::kSlotCount && unclaimed.front()->record.capacity() <= kSpareBytes;
    if (modest) spare.push_back(std::move(unclaimed.front()));
    unclaimed.pop_front();
  }
}

std::unique_ptr<offpath_op> offpath_session::take_op() {
  if (spare.empty()) return std::make_unique<offpath_op>();
  std::unique_ptr<offpath_op> op = std::move(spare.back());
  spare.pop_back();
  op->slot.store(offpath_op::kQueued, std::memory_order_relaxed);
  op->status.store(OFFPATH_IN_PROGRESS, std::memory_order_relaxed);
  op->test_count.store(0, std::memory_order_relaxed);
  op->times.posted_ns = 0;
  return op;
}

// ---- finishing -------------------------------------------------------------------------------------------------

offpath_status_t offpath_session::settle(offpath_op& op) {
  const auto known = static_cast<offpath_status_t>(op.status.load(std::memory_order_acquire));
  if (known != OFFPATH_IN_PROGRESS) return known;
  const bool was_lost = life.lost;  // then nobody writes to the slot any more
  if (op.slot != offpath_op::kQueued) {
    Slot& entry = slot(op.slot);
    if (entry.state.load(std::memory_order_acquire) == static_cast<uint32_t>(SlotState::done)) {
      if (op.times.posted_ns != 0) take_times(op);
      finish(op, offpath::base::known_code(entry.status));
      return static_cast<offpath_status_t>(op.status.load());
    }
  }
  if (op.kind == OpKind::task && (was_lost || op.handed_on)) {
    if (const auto status = successor->settle(op)) return *status;
  }
  if (!was_lost) return OFFPATH_IN_PROGRESS;
  const uint32_t state = op.slot == offpath_op::kQueued ? 0 : slot(op.slot).state.load(std::memory_order_acquire);
  if (state == static_cast<uint32_t>(SlotState::arrived)) {
    finish(op, OFFPATH_OK);
    return OFFPATH_OK;
  }
  bool begun = false;
  if (op.in_sequence() && op.slot != offpath_op::kQueued) {
    begun = op.sequence < team_record(*op.team).started.load(std::memory_order_acquire);
  } else if ((op.kind == OpKind::remote || op.kind == OpKind::task || of_file(op)) && op.slot != offpath_op::kQueued) {
    begun = state == static_cast<uint32_t>(SlotState::active);
  }
  finish(op, begun ? OFFPATH_ERR_SERVICE_LOST : OFFPATH_ERR_NOT_STARTED);
  return static_cast<offpath_status_t>(op.status.load());
}

// Believed only as far as they can be true.
void offpath_session::take_times(offpath_op& op) const {
  const Slot& entry = slot(op.slot);
  offpath_op_times_t times = op.times;
  times.started_ns = entry.started_ns.load(std::memory_order_relaxed);
  times.first_byte_ns = entry.first_byte_ns.load(std::memory_order_relaxed);
  times.done_ns = entry.done_ns.load(std::memory_order_relaxed);
  times.last_peer = entry.last_peer.load(std::memory_order_relaxed);
  const bool moved = times.first_byte_ns != 0;
  const bool in_order = times.posted_ns <= times.started_ns && times.started_ns <= times.done_ns &&
                        times.done_ns <= offpath::base::clock_ns() &&
                        (!moved || (times.started_ns <= times.first_byte_ns && times.first_byte_ns <= times.done_ns));
  if (!in_order || times.last_peer >= op.team->size) return;
  times.struct_bytes = sizeof(times);
  op.times = times;
}

void offpath_session::finish(offpath_op& op, offpath_status_t status) {
  if (status == OFFPATH_OK) op.copy_own_blocks();
  if (!op.after.empty()) release_after(op);
  if (op.handed_on) successor->forget(op);
  if (op.slot != offpath_op::kQueued) {
    if (of_executors(op) && !op.handed_on) take_result(op);
    if (of_file(op)) take_file_result(op);
    arena.release(op.record_offset, op.record.size());
    if (op.kind == OpKind::remote) op.window->note_end(op, status);
    slot(op.slot).state.store(static_cast<uint32_t>(SlotState::free), std::memory_order_relaxed);
    by_slot[op.slot] = nullptr;
    free_slots.push_back(op.slot);
    --outstanding;
  } else {
    std::erase(queue, &op);
    if (op.kind == OpKind::remote) {
      op.window->note_end(op, status);
      op.window->drop(op.sequence);
    }
  }
  if (op.memory_freed && status == OFFPATH_OK) {
    status = OFFPATH_ERR_MEMORY_FAULT;
    snprintf(op.result.text, sizeof(op.result.text), "memory of the task was freed while it was under way");
  }
  // A failed operation is redone by the caller from the staged data, so that stays until the op is freed.
  if (status == OFFPATH_OK) op.staging.reset();
  offpath_team* team = op.team;
  --team->unfinished;
  if (op.kind == OpKind::gate) --team->gates;
  offpath_window* window = op.window;
  op.status.store(status, std::memory_order_release);
  if (op.memory_freed) free_late();
  if (window != nullptr && --window->unfinished == 0 && window->destroyed) release_window(window);
  team->let_go |= op.kind == OpKind::team_destroy || life.lost;
  if (team->destroyed && team->unfinished == 0 && team->let_go) release_team(team);
}
