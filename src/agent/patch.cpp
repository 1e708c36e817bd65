// SPDX-License-Identifier: BSD-3-Clause
#include "agent/patch.hpp"

#include "base/records.hpp"

#include <algorithm>
#include <cstddef>

namespace offpath::agent {

using base::Result;
using base::Status;
using session::Atomic32;
using session::Atomic64;
using session::OpKind;
using session::SegmentHeader;
using session::Slot;

namespace {

constexpr uint32_t kMaxPieces = 8;

// Copies pieces out of a segment whose client may write there meanwhile.
class Pieces {
 public:
  explicit Pieces(const session::SegmentView& view) : view_(view) {}

  void add_slot(uint32_t index) {
    add(static_cast<uint32_t>(session::kSlotsOffset + index * sizeof(Slot)),
        {reinterpret_cast<const uint8_t*>(&view_.slot(index)), sizeof(Slot)});
  }
  void add_arena(uint64_t offset, uint64_t bytes) {
    const uint8_t* from = bytes == 0 ? nullptr : view_.bytes_at(offset, bytes);
    if (from != nullptr) add(static_cast<uint32_t>(offset), {from, bytes});
  }
  std::vector<uint8_t> end(uint32_t slot) {
    std::vector<uint8_t> out;
    base::RecordWriter writer(out);
    writer.write(Submission{slot, count_});
    out.insert(out.end(), body_.begin(), body_.end());
    return out;
  }

 private:
  void add(uint32_t offset, std::span<const uint8_t> bytes) {
    base::RecordWriter writer(body_);
    writer.write(Piece{offset, static_cast<uint32_t>(bytes.size())});
    writer.write_all(bytes);
    ++count_;
  }
  const session::SegmentView& view_;
  std::vector<uint8_t> body_;
  uint32_t count_ = 0;
};

bool lies_in(uint32_t offset, size_t bytes, size_t begin, size_t end) {
  return offset >= begin && offset <= end && bytes <= end - offset;
}

bool client_may_write(const Piece& piece, uint32_t slot) {
  const size_t begin = session::kSlotsOffset + size_t{slot} * sizeof(Slot);
  return lies_in(piece.offset, piece.bytes, begin, begin + sizeof(Slot)) ||
         lies_in(piece.offset, piece.bytes, session::kArenaOffset, session::kSegmentBytes);
}

struct Field {
  size_t offset;
  uint16_t bytes;
};
constexpr Field kSlotFields[] = {{offsetof(Slot, state), 4},      {offsetof(Slot, status), 4},
                                 {offsetof(Slot, steps_left), 4}, {offsetof(Slot, exports_left), 4},
                                 {offsetof(Slot, started_ns), 8}, {offsetof(Slot, first_byte_ns), 8},
                                 {offsetof(Slot, done_ns), 8},    {offsetof(Slot, last_peer), 4}};

}  // namespace

std::vector<uint8_t> submission_of(const session::SegmentView& view, uint32_t index) {
  const Slot& slot = view.slot(index);
  const auto kind = static_cast<OpKind>(slot.kind);  // the client may change it
  Pieces pieces(view);
  pieces.add_slot(index);
  pieces.add_arena(slot.record, slot.record_bytes);
  if (kind == OpKind::window_open) pieces.add_arena(slot.window, sizeof(session::WindowRecord));
  if (kind == OpKind::team_create) {
    const uint64_t at = slot.team;
    const session::TeamRecord* team = view.team_record(at);
    if (team != nullptr) {
      const uint64_t addresses = team->addresses, address_of = team->address_of, lost = team->lost;
      const uint64_t size = team->size, count = team->addresses_count, stride = team->address_stride;
      pieces.add_arena(at, sizeof(session::TeamRecord));
      pieces.add_arena(addresses, count * std::min<uint64_t>(stride, OFFPATH_ADDRESS_MAX_BYTES));
      pieces.add_arena(address_of, size * sizeof(uint32_t));
      pieces.add_arena(lost, size);
    }
  }
  return pieces.end(index);
}

Result<std::vector<std::pair<uint32_t, std::span<const uint8_t>>>> pieces_in(std::span<const uint8_t> body,
                                                                             uint32_t& slot) {
  const auto wrong = [] { return Status::error(OFFPATH_ERR_ARGUMENT, "a submission on a link is malformed"); };
  std::vector<std::pair<uint32_t, std::span<const uint8_t>>> out;
  Submission head;
  if (body.size() < sizeof(head)) return wrong();
  memcpy(&head, body.data(), sizeof(head));
  body = body.subspan(sizeof(head));
  if (head.slot >= session::kSlotCount || head.pieces > kMaxPieces) return wrong();
  for (uint32_t i = 0; i < head.pieces; ++i) {
    Piece piece;
    if (body.size() < sizeof(piece)) return wrong();
    memcpy(&piece, body.data(), sizeof(piece));
    body = body.subspan(sizeof(piece));
    if (piece.bytes > body.size() || !client_may_write(piece, head.slot)) return wrong();
    out.emplace_back(piece.offset, body.first(piece.bytes));
    body = body.subspan(piece.bytes);
  }
  if (!body.empty()) return wrong();
  slot = head.slot;
  return out;
}

bool may_write(const Word& word) {
  if ((word.bytes != 1 && word.bytes != 4 && word.bytes != 8) || word.offset % word.bytes != 0) return false;
  if (word.how != How::store && (word.how != How::if_zero || word.bytes != 4)) return false;
  const uint32_t offset = word.offset;
  if (lies_in(offset, word.bytes, session::kArenaOffset, session::kSegmentBytes)) return true;
  if (lies_in(offset, word.bytes, session::kSlotsOffset, session::kAliasesOffset)) {
    const size_t within = (offset - session::kSlotsOffset) % sizeof(Slot);
    return std::any_of(std::begin(kSlotFields), std::end(kSlotFields),
                       [&](const Field& field) { return field.offset == within && field.bytes == word.bytes; });
  }
  const size_t counters = offsetof(SegmentHeader, counters);
  return (offset == offsetof(SegmentHeader, answered) && word.bytes == 4) ||
         (offset == offsetof(SegmentHeader, in_use) && word.bytes == 4) ||
         (word.bytes == 8 && lies_in(offset, 8, counters, counters + sizeof(session::Counters))) ||
         (word.bytes == 8 && lies_in(offset, 8, session::kCodedOffset, session::kCodedEnd));
}

uint64_t load(const uint8_t* segment, uint32_t offset, uint16_t bytes) {
  const uint8_t* at = segment + offset;
  if (bytes == 8) return reinterpret_cast<const Atomic64*>(at)->load(std::memory_order_acquire);
  if (bytes == 4) return reinterpret_cast<const Atomic32*>(at)->load(std::memory_order_acquire);
  return *at;
}

void store(uint8_t* segment, const Word& word) {
  uint8_t* at = segment + word.offset;
  uint32_t none = 0;
  if (word.how == How::if_zero) {
    reinterpret_cast<Atomic32*>(at)->compare_exchange_strong(none, static_cast<uint32_t>(word.value));
  } else if (word.bytes == 8) {
    reinterpret_cast<Atomic64*>(at)->store(word.value, std::memory_order_release);
  } else if (word.bytes == 4) {
    reinterpret_cast<Atomic32*>(at)->store(static_cast<uint32_t>(word.value), std::memory_order_release);
  } else {
    *at = static_cast<uint8_t>(word.value);
  }
}

}  // namespace offpath::agent
