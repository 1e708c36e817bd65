// SPDX-License-Identifier: BSD-3-Clause
#include "remote/journal.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace offpath::remote {
namespace {

using base::Status;

constexpr uint64_t kMark = 0x6c6e726a'32460000ULL;   // a service writes here
constexpr uint64_t kAreaBytes = uint64_t{16} << 10;  // written at once: what stays in a core's own cache
constexpr uint64_t kRingBytes = uint64_t{12} << 10;

// Words are stored in the order of the program; what a store says is there before it.
using Word = std::atomic<uint64_t>;
static_assert(sizeof(Word) == 8 && Word::is_always_lock_free);

struct Head {
  Word mark;
  Word open;       // number + 1 of the operation that is open; 0: none
  Word from;       // whose it is
  Word done;       // bytes of it that are in place
  Word intended;   // bytes that are being written; 0: nothing is
  Word address;    // where, if all lies together
  Word ranges;     // else so many places, which lie before the bytes
  Word then_done;  // bytes in place once they are
  Word first;      // value in the ring that is still there
  Word end;        // of the last one
};

struct ValueHead {
  uint64_t number;
  uint32_t from;
  uint32_t bytes;
};

constexpr uint64_t kPlaceBytes = sizeof(memory::Range);

uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }
uint64_t area_at(uint32_t members) { return sizeof(Head) + uint64_t{8} * members; }
uint64_t ring_at(uint32_t members) { return area_at(members) + kAreaBytes; }

Head& head_of(uint8_t* memory) { return *reinterpret_cast<Head*>(memory); }
Word& done_of(uint8_t* memory, uint32_t member) { return reinterpret_cast<Word*>(memory + sizeof(Head))[member]; }
void say(Word& word, uint64_t value) { word.store(value, std::memory_order_release); }

// What lies where a value did not fit, if a head does.
constexpr uint32_t kNobody = UINT32_MAX;

// None lies over the end of the ring: the position of one that long.
uint64_t position_of(uint64_t end, uint64_t bytes) {
  const uint64_t left = kRingBytes - end % kRingBytes;
  return left < sizeof(ValueHead) + padded(bytes) ? end + left : end;
}

// What was being written. False: that cannot be.
bool complete(const Head& head, const uint8_t* area, uint64_t bytes, const memory::Port& memory) {
  const uint64_t count = head.ranges.load();
  if (count == 0) return memory.write(head.address.load(), area, bytes).ok();
  if (count > (kAreaBytes - bytes) / kPlaceBytes) return false;
  std::vector<memory::Range> ranges(count);
  std::memcpy(ranges.data(), area, count * kPlaceBytes);
  uint64_t sum = 0;
  for (const memory::Range& range : ranges) sum += std::min(range.bytes, kAreaBytes);
  return sum == bytes && memory.scatter(ranges, area + count * kPlaceBytes).ok();
}

class JournaledPort : public memory::Port {
 public:
  JournaledPort(std::shared_ptr<memory::Port> memory, std::shared_ptr<Journal> journal)
      : memory_(std::move(memory)), journal_(std::move(journal)) {}
  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket ticket) const override {
    return memory_->read(to, address, bytes, ticket);
  }
  const uint8_t* look(uint64_t address, size_t bytes) const override { return memory_->look(address, bytes); }
  // A draft's worth.
  size_t alike(uint64_t address, size_t bytes) const override {
    return memory_->alike(address, std::min<size_t>(bytes, kAreaBytes));
  }
  uint8_t* draft(uint64_t, size_t bytes) const override { return journal_->draft(bytes); }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket) const override {
    return journal_->write(*memory_, address, static_cast<const uint8_t*>(from), bytes);
  }
  memory::Outcome scatter(std::span<const memory::Range> ranges, const void* from, memory::Ticket) const override {
    return journal_->scatter(*memory_, ranges, static_cast<const uint8_t*>(from));
  }
  memory::Outcome gather(void* to, std::span<const memory::Range> ranges, memory::Ticket ticket) const override {
    return memory_->gather(to, ranges, ticket);
  }

 private:
  const std::shared_ptr<memory::Port> memory_;
  const std::shared_ptr<Journal> journal_;
};

}  // namespace

uint64_t journal_bytes(uint32_t members) { return ring_at(members) + kRingBytes; }

Journal::Journal(uint8_t* memory, uint32_t members, std::shared_ptr<const void> keeper)
    : memory_(memory), members_(members), keeper_(std::move(keeper)) {
  std::memset(memory_, 0, area_at(members));
  say(head_of(memory_).mark, kMark + members);
}

void Journal::begin(uint32_t from, uint64_t number) {
  from_ = from;
  number_ = number;
  done_bytes_ = 0;
  Head& head = head_of(memory_);
  say(head.open, 0);
  say(head.from, from);
  say(head.done, 0);
  say(head.open, number + 1);
}

void Journal::end() {
  say(done_of(memory_, from_), number_ + 1);
  say(head_of(memory_).open, 0);
}

void Journal::note_fetched(std::span<const uint8_t> value) {
  const uint64_t at = position_of(ring_end_, value.size()), end = at + sizeof(ValueHead) + padded(value.size());
  if (value.size() > kRingBytes / 2) return;
  while (!fetched_.empty() && fetched_.front() + kRingBytes < end) fetched_.pop_front();
  fetched_.push_back(at);
  Head& head = head_of(memory_);
  say(head.first, fetched_.front());
  uint8_t* const ring = memory_ + ring_at(members_);
  const ValueHead gap{0, kNobody, 0};
  if (at - ring_end_ >= sizeof(gap)) std::memcpy(ring + ring_end_ % kRingBytes, &gap, sizeof(gap));
  uint8_t* const to = ring + at % kRingBytes;
  const ValueHead said{number_, from_, static_cast<uint32_t>(value.size())};
  std::memcpy(to, &said, sizeof(said));
  std::memcpy(to + sizeof(said), value.data(), value.size());
  ring_end_ = end;
  say(head.end, end);
}

// What is in the area, so many bytes.
template <typename Write>
Status Journal::write_intended(uint64_t bytes, Write write) {
  Head& head = head_of(memory_);
  done_bytes_ += bytes;
  say(head.then_done, done_bytes_);
  say(head.intended, bytes);
  const memory::Outcome outcome = write();
  say(head.done, done_bytes_);
  say(head.intended, 0);
  return outcome.status();
}

uint8_t* Journal::draft(size_t bytes) { return bytes <= kAreaBytes ? memory_ + area_at(members_) : nullptr; }

Status Journal::write(const memory::Port& memory, uint64_t address, const uint8_t* from, size_t bytes) {
  Head& head = head_of(memory_);
  uint8_t* const area = memory_ + area_at(members_);
  for (uint64_t at = 0; at < bytes; at += kAreaBytes) {
    const uint64_t part = std::min<uint64_t>(kAreaBytes, bytes - at);
    if (from + at != area) std::memcpy(area, from + at, part);
    say(head.address, address + at);
    say(head.ranges, 0);
    Status status = write_intended(part, [&] { return memory.write(address + at, from + at, part); });
    if (!status.ok()) return status;
  }
  return {};
}

// As many ranges at once as have room in the area, with their bytes.
Status Journal::scatter(const memory::Port& memory, std::span<const memory::Range> ranges, const uint8_t* from) {
  uint8_t* const area = memory_ + area_at(members_);
  while (!ranges.empty()) {
    size_t count = 0;
    uint64_t bytes = 0;
    while (count < ranges.size() &&
           ranges[count].bytes <= kAreaBytes - bytes - std::min(kAreaBytes - bytes, (count + 1) * kPlaceBytes)) {
      bytes += ranges[count++].bytes;
    }
    Status status;
    if (count > 1) {
      std::memcpy(area, ranges.data(), count * kPlaceBytes);
      std::memcpy(area + count * kPlaceBytes, from, bytes);
      say(head_of(memory_).ranges, count);
      status = write_intended(bytes, [&] { return memory.scatter(ranges.first(count), from); });
    } else {
      count = 1;
      bytes = ranges[0].bytes;
      status = write(memory, static_cast<uint64_t>(ranges[0].offset), from, bytes);
    }
    if (!status.ok()) return status;
    from += bytes;
    ranges = ranges.subspan(count);
  }
  return {};
}

std::shared_ptr<memory::Port> make_journaled(std::shared_ptr<memory::Port> memory, std::shared_ptr<Journal> journal) {
  return std::make_shared<JournaledPort>(std::move(memory), std::move(journal));
}

std::optional<History> History::read(std::span<const uint8_t> journal, uint32_t members, const memory::Port& memory) {
  if (journal.size() < journal_bytes(members)) return std::nullopt;
  auto* const from = const_cast<uint8_t*>(journal.data());  // words are only loaded
  const Head& head = head_of(from);
  if (head.mark.load(std::memory_order_acquire) != kMark + members) return std::nullopt;
  History out;
  for (uint32_t member = 0; member < members; ++member) out.done_.push_back(done_of(from, member).load());
  const uint64_t open = head.open.load(), whose = head.from.load(), intended = head.intended.load();
  if (open > 0 && whose < members && out.done_[whose] < open) {
    out.open_ = Open{static_cast<uint32_t>(whose), open - 1, head.done.load()};
    if (intended > 0 && intended <= kAreaBytes) {
      if (!complete(head, from + area_at(members), intended, memory)) return std::nullopt;
      out.open_->bytes = head.then_done.load();
    }
  }
  const uint64_t end = head.end.load();
  for (uint64_t at = head.first.load(); at < end && end - at <= kRingBytes;) {
    ValueHead said{0, kNobody, 0};
    const uint64_t left = kRingBytes - at % kRingBytes;
    const uint8_t* const begin = from + ring_at(members) + at % kRingBytes;
    if (left >= sizeof(said)) std::memcpy(&said, begin, sizeof(said));
    if (said.from == kNobody || said.bytes > left - sizeof(said)) {
      at += left;
      continue;
    }
    const uint8_t* const value = begin + sizeof(said);
    out.values_.push_back({said.from, said.number, {value, value + said.bytes}});
    at += sizeof(said) + padded(said.bytes);
  }
  return out;
}

std::optional<std::vector<uint8_t>> History::fetched(uint32_t from, uint64_t number) const {
  const auto is = [&](const Value& value) { return value.from == from && value.number == number; };
  const auto found = std::find_if(values_.rbegin(), values_.rend(), is);
  return found == values_.rend() ? std::nullopt : std::optional(found->bytes);
}

}  // namespace offpath::remote
