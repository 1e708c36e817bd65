// SPDX-License-Identifier: BSD-3-Clause
#include "agent/open_memory.hpp"

#include "base/log.hpp"
#include "collective/collective.hpp"
#include "remote/record.hpp"
#include "tasks/record.hpp"

#include <algorithm>
#include <utility>

namespace offpath::agent {

using base::Status;
using memory::Outcome;
using memory::Range;
using memory::Ticket;
using session::OpKind;
using session::Slot;

// ---- one block ------------------------------------------------------------------------------------------------------

Footprint::Footprint(uint64_t address, uint64_t bytes)
    : begin_(address), end_(bytes > UINT64_MAX - address ? UINT64_MAX : address + bytes) {}

std::optional<Footprint> Footprint::of(const memory::Block& block, const std::vector<memory::Layout>& layouts) {
  if (block.layout == 0) return Footprint(block.address, block.bytes);
  if (block.layout > layouts.size() || block.bytes == 0) return std::nullopt;
  const memory::Layout& layout = layouts[block.layout - 1];
  if (!memory::is_layout(layout.size_bytes, layout.ranges)) return std::nullopt;
  Footprint out;
  for (const Range& range : layout.ranges) {
    if (range.bytes > 0) out.ranges_.push_back(range);
    out.longest_ = std::max(out.longest_, range.bytes);
  }
  std::sort(out.ranges_.begin(), out.ranges_.end(), [](const Range& a, const Range& b) { return a.offset < b.offset; });
  out.count_ = (block.bytes - 1) / layout.size_bytes + 1;
  // Counted from the lowest element on, and from its lowest byte.
  const int64_t first = out.ranges_.front().offset;
  __int128 end = 0;
  for (Range& range : out.ranges_) {
    if (__builtin_sub_overflow(range.offset, first, &range.offset)) return std::nullopt;
    end = std::max(end, static_cast<__int128>(range.offset) + range.bytes);
  }
  const __int128 stride = layout.extent_bytes, reach = stride * static_cast<__int128>(out.count_ - 1);
  const __int128 base = static_cast<__int128>(block.address) + first + std::min<__int128>(reach, 0);
  const __int128 behind = base + (reach < 0 ? -reach : reach) + end;
  if (base < 0 || behind > UINT64_MAX) return std::nullopt;
  out.base_ = out.begin_ = static_cast<uint64_t>(base);
  out.end_ = static_cast<uint64_t>(behind);
  out.span_ = static_cast<uint64_t>(end);
  out.extent_ = static_cast<uint64_t>(stride < 0 ? -stride : stride);
  return out;
}

uint64_t Footprint::covered(uint64_t address) const {
  if (address < begin_ || address >= end_) return 0;
  if (ranges_.empty()) return end_ - address;
  uint64_t at = address - base_, elements = count_;
  if (extent_ >= span_) {  // elements do not mix: only one of them can have it
    const uint64_t element = std::min(at / extent_, count_ - 1);
    at -= element * extent_;
    elements = 1;
  }
  const auto from = std::upper_bound(ranges_.begin(), ranges_.end(), at, [](uint64_t value, const Range& range) {
    return value < static_cast<uint64_t>(range.offset);
  });
  const uint64_t back = extent_ * (elements - 1) + longest_;  // no range that begins earlier gets here
  for (auto range = from; range != ranges_.begin();) {
    --range;
    const uint64_t distance = at - static_cast<uint64_t>(range->offset);
    if (distance >= back) break;
    const uint64_t element = extent_ == 0 ? 0 : std::min(distance / extent_, elements - 1);
    const uint64_t within = distance - element * extent_;
    if (within < range->bytes) return range->bytes - within;
  }
  return 0;
}

// ---- all of a client's ----------------------------------------------------------------------------------------------

void OpenMemory::open(uint32_t slot, Footprint footprint) {
  if (footprint.begin() == footprint.end()) return;
  if (operations_.empty()) longest_ = 0;
  longest_ = std::max(longest_, footprint.end() - footprint.begin());
  const uint64_t begin = footprint.begin();
  by_slot_[slot].push_back(operations_.emplace(begin, std::move(footprint)));
}

void OpenMemory::begin(const session::SegmentView& view, uint32_t index) {
  const Slot& slot = view.slot(index);
  const uint64_t window = slot.window, address = slot.address, bytes = slot.bytes;  // the client may change them
  const auto open_all = [&](const std::vector<memory::Block>& blocks, const std::vector<memory::Layout>& layouts) {
    for (const memory::Block& block : blocks) {
      if (auto footprint = Footprint::of(block, layouts)) open(index, std::move(*footprint));
    }
  };
  end(index);
  switch (static_cast<OpKind>(slot.kind)) {
    case OpKind::collective:
      if (const auto collective = collective::decode(view.record(slot)); collective.ok()) {
        open_all(collective->send, collective->layouts);
        open_all(collective->recv, collective->layouts);
      }
      break;
    case OpKind::remote:
      if (const auto origin = remote::decode_origin(view.record(slot)); origin.ok())
        open_all({origin->send, origin->result}, origin->layouts);
      break;
    case OpKind::task:
      if (const auto task = tasks::decode_task(view.record(slot)); task.ok()) {
        for (const tasks::RangeRecord& range : task->ranges) open(index, Footprint(range.address, range.bytes));
      }
      break;
    case OpKind::window_open:
      if (const session::WindowRecord* record = view.window_record(window); record != nullptr) {
        windows_.erase(window);  // of one that is there no more
        windows_.emplace(window, Region{record->base, Footprint(record->base, record->bytes)});
      }
      break;
    case OpKind::window_attach:
      windows_.emplace(window, Region{address, Footprint(address, bytes)});
      break;
    case OpKind::window_close:
      endings_[index] = {window, std::nullopt};
      break;
    case OpKind::window_detach:
      endings_[index] = {window, address};
      break;
    default:
      break;
  }
}

void OpenMemory::end(uint32_t slot) {
  last_ = nullptr;
  if (const auto found = by_slot_.extract(slot); !found.empty()) {
    for (const auto footprint : found.mapped()) operations_.erase(footprint);
  }
  const auto ending = endings_.extract(slot);
  if (ending.empty()) return;
  const Ending& what = ending.mapped();
  const auto [first, last] = windows_.equal_range(what.window);
  for (auto region = first; region != last;) {
    const bool goes = !what.address || region->second.address == *what.address;
    region = goes ? windows_.erase(region) : std::next(region);
  }
}

const Footprint* OpenMemory::find(uint64_t address) const {
  const auto has = [&](const Footprint* footprint) { return footprint != nullptr && footprint->covered(address) > 0; };
  if (has(last_)) return last_;
  if (has(&lent_)) return last_ = &lent_;
  for (const auto& [window, region] : windows_) {
    if (has(&region.footprint)) return last_ = &region.footprint;
  }
  for (auto next = operations_.upper_bound(address); next != operations_.begin();) {
    --next;
    if (address - next->first >= longest_) break;  // nothing that begins earlier gets here
    if (has(&next->second)) return last_ = &next->second;
  }
  return nullptr;
}

bool OpenMemory::covers(uint64_t address, uint64_t bytes) const {
  if (bytes > UINT64_MAX - address) return false;
  while (bytes > 0) {
    const Footprint* const footprint = find(address);
    if (footprint == nullptr) return false;
    const uint64_t part = std::min(bytes, footprint->covered(address));
    address += part;
    bytes -= part;
  }
  return true;
}

// ---- the port -------------------------------------------------------------------------------------------------------

namespace {

class Guarded : public memory::Port {
 public:
  Guarded(std::shared_ptr<memory::Port> memory, std::shared_ptr<const OpenMemory> open)
      : memory_(std::move(memory)), open_(std::move(open)) {}

  Outcome read(void* to, uint64_t address, size_t bytes, Ticket ticket) const override {
    return open_->covers(address, bytes) ? memory_->read(to, address, bytes, ticket) : refused(address, bytes);
  }
  Outcome write(uint64_t address, const void* from, size_t bytes, Ticket ticket) const override {
    return open_->covers(address, bytes) ? memory_->write(address, from, bytes, ticket) : refused(address, bytes);
  }
  Outcome gather(void* to, std::span<const Range> ranges, Ticket ticket) const override {
    const Range* const wrong = closed(ranges);
    return wrong == nullptr ? memory_->gather(to, ranges, ticket) : refused(*wrong);
  }
  Outcome scatter(std::span<const Range> ranges, const void* from, Ticket ticket) const override {
    const Range* const wrong = closed(ranges);
    return wrong == nullptr ? memory_->scatter(ranges, from, ticket) : refused(*wrong);
  }
  bool prompt() const override { return memory_->prompt(); }
  uint8_t* view(uint64_t address, size_t bytes) const override {
    return open_->covers(address, bytes) ? memory_->view(address, bytes) : nullptr;
  }
  size_t alike(uint64_t address, size_t bytes) const override { return memory_->alike(address, bytes); }

 private:
  const Range* closed(std::span<const Range> ranges) const {
    const auto wrong = std::find_if(ranges.begin(), ranges.end(), [this](const Range& range) {
      return !open_->covers(static_cast<uint64_t>(range.offset), range.bytes);
    });
    return wrong == ranges.end() ? nullptr : &*wrong;
  }
  static Status refused(const Range& range) { return refused(static_cast<uint64_t>(range.offset), range.bytes); }
  static Status refused(uint64_t address, uint64_t bytes) {
    const auto status = Status::error(OFFPATH_ERR_PERMISSION,
                                      "the service on the DPU wants %llu bytes at %#llx, which no operation or window "
                                      "that is open has",
                                      static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address));
    base::log_write(base::LogLevel::warn, "%s", status.text());
    return status;
  }

  const std::shared_ptr<memory::Port> memory_;
  const std::shared_ptr<const OpenMemory> open_;
};

}  // namespace

std::shared_ptr<memory::Port> guarded(std::shared_ptr<memory::Port> memory, std::shared_ptr<const OpenMemory> open) {
  return std::make_shared<Guarded>(std::move(memory), std::move(open));
}

}  // namespace offpath::agent
