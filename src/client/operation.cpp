// SPDX-License-Identifier: BSD-3-Clause
// Life of an operation in the session segment: submitted, settled, finished.
#include "client/session.hpp"

#include <algorithm>
#include <cstring>

namespace layout = offpath::session;
using layout::OpKind;
using layout::Slot;
using layout::SlotState;

namespace {

bool counts(OpKind kind) { return kind == OpKind::alltoall || kind == OpKind::alltoallv; }

}  // namespace

void offpath_op::copy_own_block() {
  if (own_bytes > 0) memcpy(own_target, own_source, own_bytes);
  own_bytes = 0;
}

// ---- posting ---------------------------------------------------------------------------------------------------

offpath_status_t offpath_session::post(std::unique_ptr<offpath_op> owned, offpath_op** out) {
  offpath_op& op = *owned;
  reap_orphans();
  if (counts(op.kind)) {
    if (lost || team_record(*op.team).broken.load(std::memory_order_acquire) != 0) return OFFPATH_ERR_NOT_STARTED;
    op.sequence = op.team->next_sequence;
  }
  if (!queue.empty() || !submit(op)) {
    if (outstanding == 0 && queue.empty()) return OFFPATH_ERR_NO_MEMORY;  // nothing will ever make room
    queue.push_back(&op);
  }
  ++op.team->unfinished;
  if (counts(op.kind)) {
    ++op.team->next_sequence;
    ++posted_count;
  }
  if (out != nullptr) {
    *out = owned.release();
  } else {
    orphans.push_back(std::move(owned));
  }
  return OFFPATH_OK;
}

bool offpath_session::submit(offpath_op& op) {
  if (free_slots.empty()) return false;
  const uint64_t arrays_bytes = op.arrays.size() * sizeof(uint64_t);
  op.progress_offset = arena.allocate(op.team->size);
  op.arrays_offset = arrays_bytes > 0 ? arena.allocate(arrays_bytes) : 0;
  if (op.progress_offset == 0 || (arrays_bytes > 0 && op.arrays_offset == 0)) {
    arena.release(op.progress_offset, op.team->size);
    return false;
  }
  memset(at<uint8_t>(op.progress_offset), 0, op.team->size);
  if (arrays_bytes > 0) memcpy(at<uint8_t>(op.arrays_offset), op.arrays.data(), arrays_bytes);
  op.slot = free_slots.back();
  by_slot[op.slot] = &op;
  free_slots.pop_back();
  ++outstanding;
  Slot& entry = slot(op.slot);
  entry.kind = static_cast<uint32_t>(op.kind);
  entry.status = OFFPATH_IN_PROGRESS;
  entry.flags = op.flags;
  entry.team = op.team->record;
  entry.sequence = op.sequence;
  entry.send = op.send;
  entry.recv = op.recv;
  entry.block_bytes = op.block_bytes;
  entry.arrays = op.arrays_offset;
  entry.progress = op.progress_offset;
  entry.state.store(static_cast<uint32_t>(SlotState::posted), std::memory_order_release);
  layout::SegmentHeader& head = header();
  const uint32_t position = head.submitted.load(std::memory_order_relaxed);
  at<layout::Atomic32>(layout::kRingOffset)[position % layout::kSlotCount].store(op.slot, std::memory_order_relaxed);
  head.submitted.store(position + 1, std::memory_order_seq_cst);
  ring();
  return true;
}

void offpath_session::drain_queue() {
  while (!queue.empty() && !lost) {
    if (submit(*queue.front())) {
      queue.pop_front();
    } else if (!harvest()) {
      return;
    }
  }
}

bool offpath_session::harvest() {
  bool any = false;
  for (offpath_op* op : by_slot) any |= op != nullptr && settle(*op) != OFFPATH_IN_PROGRESS;
  return any;
}

void offpath_session::reap_orphans() {
  for (size_t i = 0; i < orphans.size();) {
    if (settle(*orphans[i]) == OFFPATH_IN_PROGRESS) {
      ++i;
    } else {
      orphans.erase(orphans.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

// ---- finishing -------------------------------------------------------------------------------------------------

offpath_status_t offpath_session::settle(offpath_op& op) {
  const auto known = static_cast<offpath_status_t>(op.status.load(std::memory_order_acquire));
  if (known != OFFPATH_IN_PROGRESS) return known;
  if (op.slot != offpath_op::kQueued) {
    Slot& entry = slot(op.slot);
    if (entry.state.load(std::memory_order_acquire) == static_cast<uint32_t>(SlotState::done)) {
      finish(op, static_cast<offpath_status_t>(entry.status));
      return static_cast<offpath_status_t>(op.status.load());
    }
  }
  if (!lost) return OFFPATH_IN_PROGRESS;
  const bool begun = counts(op.kind) && op.slot != offpath_op::kQueued &&
                     op.sequence < team_record(*op.team).started.load(std::memory_order_acquire);
  finish(op, begun ? OFFPATH_ERR_SERVICE_LOST : OFFPATH_ERR_NOT_STARTED);
  return static_cast<offpath_status_t>(op.status.load());
}

void offpath_session::finish(offpath_op& op, offpath_status_t status) {
  if (status == OFFPATH_OK) op.copy_own_block();
  if (op.slot != offpath_op::kQueued) {
    arena.release(op.progress_offset, op.team->size);
    arena.release(op.arrays_offset, op.arrays.size() * sizeof(uint64_t));
    slot(op.slot).state.store(static_cast<uint32_t>(SlotState::free), std::memory_order_relaxed);
    by_slot[op.slot] = nullptr;
    free_slots.push_back(op.slot);
    --outstanding;
  } else {
    std::erase(queue, &op);
  }
  // A failed operation is redone by the caller from the staged data, so that stays until the op is freed.
  if (status == OFFPATH_OK) op.staging.reset();
  offpath_team* team = op.team;
  --team->unfinished;
  op.status.store(status, std::memory_order_release);
  team->let_go |= op.kind == OpKind::team_destroy || lost;
  if (team->destroyed && team->unfinished == 0 && team->let_go) release_team(team);
}
