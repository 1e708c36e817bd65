// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/order.hpp"

#include "tasks/record.hpp"

#include <algorithm>

namespace offpath::tasks {

void Order::open(uint32_t slot) {
  Entry& entry = entries_[slot];
  entry.number = next_++;
  entry.under_way = true;
  entry.decided = true;
  entry.waits = 0;
}

void Order::begin_other(uint32_t slot) { open(slot); }

Order::Begun Order::begin(uint32_t slot, std::span<const uint32_t> after, std::span<const Range> ranges) {
  open(slot);
  Entry& entry = entries_[slot];
  bool failed = false;
  for (const uint32_t name : after) {
    if (name == kEndedWell) continue;
    if (name == kEndedBadly) {
      failed = true;
      continue;
    }
    if (name >= entries_.size() || name == slot) return {Verdict::nonsense};
    if (entries_[name].under_way) {
      entry.after.push_back({name, entries_[name].number});
    } else {
      failed |= !entries_[name].ended_well;
    }
  }
  if (failed) return {Verdict::fails};
  if (const auto other = find_overlap(slot, ranges)) return {Verdict::overlaps, *other};
  for (const Range& range : ranges) {
    if (range.bytes == 0) continue;
    longest_ = std::max(longest_, range.bytes);
    entry.uses.push_back(uses_.insert({range.address, {range.address + range.bytes, range.writes, slot}}));
  }
  for (const Name& name : entry.after) entries_[name.slot].before.push_back({slot, entry.number});
  entry.waits = static_cast<uint32_t>(entry.after.size());
  entry.decided = entry.waits == 0;
  return {entry.decided ? Verdict::ready : Verdict::waits};
}

void Order::end(uint32_t slot, bool well, std::vector<Decided>& decided) {
  Entry& entry = entries_[slot];
  if (!entry.under_way) return;
  entry.under_way = false;
  entry.ended_well = well;
  for (const auto& use : entry.uses) uses_.erase(use);
  if (uses_.empty()) longest_ = 0;
  entry.uses.clear();
  entry.after.clear();
  for (const Name& name : entry.before) {
    Entry& next = entries_[name.slot];
    if (!is_current(name) || next.decided) continue;
    --next.waits;
    if (well && next.waits > 0) continue;
    next.decided = true;
    decided.push_back({name.slot, well});
  }
  entry.before.clear();
}

std::vector<bool> Order::all_before(uint32_t slot) const {
  std::vector<bool> found(entries_.size());
  std::vector<uint32_t> to_look{slot};
  while (!to_look.empty()) {
    const Entry& entry = entries_[to_look.back()];
    to_look.pop_back();
    for (const Name& name : entry.after) {
      if (!is_current(name) || found[name.slot]) continue;
      found[name.slot] = true;
      to_look.push_back(name.slot);
    }
  }
  return found;
}

std::optional<uint32_t> Order::find_overlap(uint32_t slot, std::span<const Range> ranges) const {
  std::optional<std::vector<bool>> before;  // found out when it is needed
  for (const Range& range : ranges) {
    if (range.bytes == 0) continue;
    const uint64_t end = range.address + range.bytes;
    for (auto use = uses_.lower_bound(range.address - std::min(longest_, range.address));
         use != uses_.end() && use->first < end; ++use) {
      if (use->second.end <= range.address || !(range.writes || use->second.writes)) continue;
      if (!before) before = all_before(slot);
      if (!(*before)[use->second.slot]) return use->second.slot;
    }
  }
  return std::nullopt;
}

}  // namespace offpath::tasks
