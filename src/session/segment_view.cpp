// SPDX-License-Identifier: BSD-3-Clause
#include "session/segment_view.hpp"

#include "session/futex.hpp"

#include <climits>
#include <cstring>

namespace offpath::session {

using base::Result;
using base::Status;

Result<SegmentView> SegmentView::open(base::Memfd memory) {
  if (memory.bytes() != kSegmentBytes) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "session segment has %zu bytes, not %zu", memory.bytes(), kSegmentBytes);
  }
  SegmentView view(std::move(memory));
  const SegmentHeader& header = view.header();
  if (header.magic != kMagic || header.version != kVersion) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "session segment has version %u, this service speaks %u (library and "
                         "service are of different releases). Install them together",
                         header.version, kVersion);
  }
  if (header.slot_count != kSlotCount || header.segment_bytes != kSegmentBytes || header.ring_offset != kRingOffset ||
      header.slots_offset != kSlotsOffset || header.arena_offset != kArenaOffset) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "session segment has an unknown layout");
  }
  return view;
}

Slot& SegmentView::slot(uint32_t index) const { return reinterpret_cast<Slot*>(memory_.data() + kSlotsOffset)[index]; }

std::optional<uint32_t> SegmentView::take_submission() {
  SegmentHeader& head = header();
  const uint32_t consumed = head.consumed.load(std::memory_order_relaxed);
  const uint32_t submitted = head.submitted.load(std::memory_order_acquire);
  if (corrupt_ || consumed == submitted) return std::nullopt;
  const auto* ring = reinterpret_cast<const Atomic32*>(memory_.data() + kRingOffset);
  const uint32_t index = ring[consumed % kSlotCount].load(std::memory_order_relaxed);
  if (submitted - consumed > kSlotCount || index >= kSlotCount) {
    corrupt_ = true;
    return std::nullopt;
  }
  head.consumed.store(consumed + 1, std::memory_order_release);
  return index;
}

uint8_t* SegmentView::bytes_at(uint64_t offset, uint64_t count) const {
  if (offset < kArenaOffset || offset > memory_.bytes() || count > memory_.bytes() - offset) return nullptr;
  return memory_.data() + offset;
}

TeamRecord* SegmentView::team_record(uint64_t offset) const {
  if (offset % alignof(TeamRecord) != 0) return nullptr;
  return reinterpret_cast<TeamRecord*>(bytes_at(offset, sizeof(TeamRecord)));
}

Result<TeamArguments> SegmentView::team_arguments(uint64_t offset) const {
  const TeamRecord* record = team_record(offset);
  if (record == nullptr) return Status::error(OFFPATH_ERR_ARGUMENT, "team record lies outside the segment");
  TeamArguments out{};
  memcpy(out.id, record->id, sizeof(out.id));
  out.rank = record->rank;
  out.size = record->size;
  out.address_stride = record->address_stride;
  if (out.rank >= out.size || out.address_stride == 0 || out.address_stride > OFFPATH_ADDRESS_MAX_BYTES ||
      !copy_array(record->addresses, uint64_t{out.size} * out.address_stride, out.addresses) ||
      bytes_at(record->lost, out.size) == nullptr) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "team record has impossible values");
  }
  return out;
}

Result<OpArguments> SegmentView::op_arguments(const Slot& slot, uint32_t team_size) const {
  OpArguments out{};
  out.kind = static_cast<OpKind>(slot.kind);
  out.flags = slot.flags;
  out.team = slot.team;
  out.sequence = slot.sequence;
  out.send = slot.send;
  out.recv = slot.recv;
  out.block_bytes = slot.block_bytes;
  if (out.kind == OpKind::alltoallv) {
    const uint64_t step = uint64_t{team_size} * sizeof(uint64_t);
    const uint64_t arrays = slot.arrays;
    if (!copy_array(arrays, team_size, out.send_bytes) || !copy_array(arrays + step, team_size, out.send_displs) ||
        !copy_array(arrays + 2 * step, team_size, out.recv_bytes) ||
        !copy_array(arrays + 3 * step, team_size, out.recv_displs)) {
      return Status::error(OFFPATH_ERR_ARGUMENT, "operation arguments lie outside the segment");
    }
  }
  return out;
}

template <typename T>
bool SegmentView::copy_array(uint64_t offset, uint64_t count, std::vector<T>& out) const {
  if (count > memory_.bytes() / sizeof(T)) return false;
  const uint8_t* from = bytes_at(offset, count * sizeof(T));
  if (from == nullptr) return false;
  out.resize(count);
  memcpy(out.data(), from, count * sizeof(T));
  return true;
}

void SegmentView::finish(uint32_t slot_index, offpath_status_t status, bool counts) {
  Slot& entry = slot(slot_index);
  entry.status = status;
  if (counts) header().counters.completed.fetch_add(1, std::memory_order_relaxed);
  if (counts && status != OFFPATH_OK) header().counters.failed.fetch_add(1, std::memory_order_relaxed);
  entry.state.store(static_cast<uint32_t>(SlotState::done), std::memory_order_release);
  wake();
}

void SegmentView::wake() {
  SegmentHeader& head = header();
  head.events.fetch_add(1, std::memory_order_seq_cst);
  if (head.waiters.load(std::memory_order_seq_cst) != 0) futex_wake(head.events, INT_MAX);
}

}  // namespace offpath::session
