// SPDX-License-Identifier: BSD-3-Clause
#include "session/segment_view.hpp"

#include "base/clock.hpp"
#include "base/records.hpp"
#include "session/futex.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

namespace offpath::session {

using base::Result;
using base::Status;

namespace {
bool timed(const Slot& slot) { return (slot.flags & kTimed) != 0; }
}  // namespace

Result<SegmentView> SegmentView::open(base::Memfd memory) {
  if (memory.bytes() < kSegmentBytes) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "session segment has %zu bytes, not %zu or more", memory.bytes(),
                         kSegmentBytes);
  }
  SegmentView view(std::move(memory));
  const SegmentHeader& header = view.header();
  if (header.magic != kMagic || header.version != kVersion) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "session segment has version %u, this service speaks %u (library and "
                         "service are of different releases). Install them together",
                         header.version, kVersion);
  }
  const uint64_t shared_bytes = view.shared_bytes();
  if (header.shared_bytes != shared_bytes || shared_bytes % kHeaderBytes != 0 ||
      view.shared_address_ + shared_bytes < shared_bytes || header.slot_count != kSlotCount ||
      header.segment_bytes != kSegmentBytes || header.ring_offset != kRingOffset ||
      header.slots_offset != kSlotsOffset || header.arena_offset != kArenaOffset) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "session segment has an unknown layout");
  }
  return view;
}

Slot& SegmentView::slot(uint32_t index) const {
  return reinterpret_cast<Slot*>(mapping_->data() + kSlotsOffset)[index];
}

std::optional<uint32_t> SegmentView::take_submission() {
  SegmentHeader& head = header();
  const uint32_t consumed = head.consumed.load(std::memory_order_relaxed);
  const uint32_t submitted = head.submitted.load(std::memory_order_acquire);
  if (corrupt_ || consumed == submitted) return std::nullopt;
  const auto* ring = reinterpret_cast<const Atomic32*>(mapping_->data() + kRingOffset);
  const uint32_t index = ring[consumed % kSlotCount].load(std::memory_order_relaxed);
  if (submitted - consumed > kSlotCount || index >= kSlotCount) {
    corrupt_ = true;
    return std::nullopt;
  }
  head.consumed.store(consumed + 1, std::memory_order_release);
  return index;
}

namespace {
bool good_aliases(const std::vector<AliasRecord>& aliases, uint64_t shared_bytes) {
  uint64_t end = 0;  // of the one before
  for (const AliasRecord& alias : aliases) {
    const bool whole = (alias.address | alias.bytes | alias.offset) % kHeaderBytes == 0 && alias.bytes > 0;
    if (!whole || alias.bytes > shared_bytes || alias.offset > shared_bytes - alias.bytes || alias.address < end ||
        alias.address > UINT64_MAX - alias.bytes) {
      return false;
    }
    end = alias.address + alias.bytes;
  }
  return true;
}
}  // namespace

std::optional<std::vector<AliasRecord>> SegmentView::take_aliases() {
  const SegmentHeader& head = header();
  const uint32_t version = head.aliases_version.load(std::memory_order_acquire);
  if (version == aliases_seen_) return std::nullopt;
  aliases_seen_ = version;
  const uint32_t count = head.aliases_count;  // the client may change it
  std::vector<AliasRecord> aliases;
  if (version % 2 != 0 || count > kMaxAliases) return aliases;
  aliases.resize(count);
  if (count > 0) memcpy(aliases.data(), mapping_->data() + kAliasesOffset, count * sizeof(AliasRecord));
  std::atomic_thread_fence(std::memory_order_acquire);
  std::sort(aliases.begin(), aliases.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  const bool whole = head.aliases_version.load(std::memory_order_relaxed) == version;
  if (!whole || !good_aliases(aliases, shared_bytes())) aliases.clear();
  return aliases;
}

uint8_t* SegmentView::bytes_at(uint64_t offset, uint64_t count) const {
  if (offset < kArenaOffset || offset > kSegmentBytes || count > kSegmentBytes - offset) return nullptr;
  return mapping_->data() + offset;
}

Atomic32* SegmentView::counters_at(uint64_t offset, uint64_t count) const {
  if (offset % alignof(Atomic32) != 0 || count > kSegmentBytes / sizeof(Atomic32)) return nullptr;
  return reinterpret_cast<Atomic32*>(bytes_at(offset, count * sizeof(Atomic32)));
}

template <typename T>
T* SegmentView::record_at(uint64_t offset) const {
  return offset % alignof(T) == 0 ? reinterpret_cast<T*>(bytes_at(offset, sizeof(T))) : nullptr;
}

TeamRecord* SegmentView::team_record(uint64_t offset) const { return record_at<TeamRecord>(offset); }
WindowRecord* SegmentView::window_record(uint64_t offset) const { return record_at<WindowRecord>(offset); }

Result<TeamArguments> SegmentView::team_arguments(uint64_t offset) const {
  const TeamRecord* record = team_record(offset);
  if (record == nullptr) return Status::error(OFFPATH_ERR_ARGUMENT, "team record lies outside the segment");
  TeamArguments out{};
  memcpy(out.id, record->id, sizeof(out.id));
  out.rank = record->rank;
  out.size = record->size;
  out.address_stride = record->address_stride;
  memcpy(out.compress, record->compress, sizeof(out.compress));
  out.compress[sizeof(out.compress) - 1] = '\0';
  base::RecordReader addresses(bytes_from(record->addresses)), address_of(bytes_from(record->address_of));
  const uint32_t count = record->addresses_count;
  if (out.rank >= out.size || out.address_stride == 0 || out.address_stride > OFFPATH_ADDRESS_MAX_BYTES ||
      !addresses.read_all(out.addresses, uint64_t{count} * out.address_stride) ||
      !address_of.read_all(out.address_of, out.size) || bytes_at(record->lost, out.size) == nullptr ||
      std::any_of(out.address_of.begin(), out.address_of.end(), [&](uint32_t each) { return each >= count; })) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "team record has impossible values");
  }
  return out;
}

std::span<const uint8_t> SegmentView::bytes_from(uint64_t offset) const {
  const uint8_t* begin = bytes_at(offset, 0);
  if (begin == nullptr) return {};
  return {begin, kSegmentBytes - offset};
}

Result<ProgramArguments> SegmentView::program_arguments(const Slot& slot) const {
  base::RecordReader reader(record(slot));
  ProgramArguments out{};
  if (!reader.read(out.head)) return Status::error(OFFPATH_ERR_ARGUMENT, "program record lies outside the segment");
  if (!reader.read_all(out.vectors, out.head.vectors_count) ||
      !reader.read_all(out.matrices, out.head.matrices_count) || !reader.read_all(out.before, out.head.before_count) ||
      !reader.read_all(out.after, out.head.after_count) ||
      !reader.read_all(out.statements, out.head.statements_count) ||
      !reader.read_all(out.terms, out.head.terms_count)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "program arguments lie outside the segment");
  }
  CrossingRecord crossing{};
  const bool names = (out.head.crossing & kNamesCrossing) != 0;
  if (names && (!reader.read(crossing) || !reader.read_all(out.in, crossing.in_count) ||
                !reader.read_all(out.out, crossing.out_count))) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "what crosses of a program lies outside the segment");
  }
  uint64_t terms = 0;
  for (const StatementRecord& statement : out.statements) terms += statement.terms_count;
  if (terms != out.terms.size()) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "the statements of a program have %llu terms, %zu came along",
                         static_cast<unsigned long long>(terms), out.terms.size());
  }
  return out;
}

void SegmentView::note_start(Slot& slot) {
  if (timed(slot)) slot.started_ns.store(base::clock_ns(), std::memory_order_relaxed);
  slot.state.store(static_cast<uint32_t>(SlotState::active), std::memory_order_release);
}

void SegmentView::note_first_byte(Slot& slot) {
  if (timed(slot)) slot.first_byte_ns.store(base::clock_ns(), std::memory_order_relaxed);
}

void SegmentView::finish(uint32_t slot_index, offpath_status_t status, Counted counted) {
  Slot& entry = slot(slot_index);
  entry.status = status;
  if (timed(entry)) entry.done_ns.store(base::clock_ns(), std::memory_order_relaxed);
  if (counted == Counted::yes) header().counters.completed.fetch_add(1, std::memory_order_relaxed);
  if (counted == Counted::yes && status != OFFPATH_OK) header().counters.failed.fetch_add(1, std::memory_order_relaxed);
  entry.state.store(static_cast<uint32_t>(SlotState::done), std::memory_order_release);
  tell();
}

void SegmentView::tell() {
  header().events.fetch_add(1, std::memory_order_seq_cst);
  told_ = true;
}

void SegmentView::wake() {
  if (!std::exchange(told_, false)) return;
  SegmentHeader& head = header();
  if (head.waiters.load(std::memory_order_seq_cst) != 0) futex_wake(head.events, INT_MAX);
}

uint64_t SegmentView::waited_ns(uint64_t now_ns) const {
  const uint64_t since_ns = header().waiting_since_ns.load(std::memory_order_relaxed);
  const uint64_t waiting_ns = since_ns != 0 && since_ns < now_ns ? now_ns - since_ns : 0;
  return header().waited_ns.load(std::memory_order_relaxed) + waiting_ns;
}

bool SegmentView::is_asked() const { return header().asked.load(std::memory_order_seq_cst) != answered_; }

void SegmentView::answer() {
  if (!is_asked()) return;
  answered_ = header().asked.load(std::memory_order_relaxed);
  header().answered.store(answered_, std::memory_order_release);
}

}  // namespace offpath::session
