// SPDX-License-Identifier: BSD-3-Clause
// Order: which of a client's tasks come after which of its operations, and whether two that are not ordered want the same
// memory. By slot; a slot that is named means the operation that was begun there last. Pure. Linear in what a task names; in
// all tasks under way only for one that shares memory with others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace offpath::tasks {

class Order {
 public:
  explicit Order(uint32_t slots) : entries_(slots) {}

  struct Range {
    uint64_t address;
    uint64_t bytes;
    bool writes;
  };
  enum class Verdict : uint8_t {
    ready,     // nothing that it comes after is under way
    waits,     // decided by an end
    fails,     // what it comes after has failed
    overlaps,  // with `other`, which it is not ordered with
    nonsense   // names itself, or no slot
  };
  struct Begun {
    Verdict verdict;
    uint32_t other = 0;
  };
  struct Decided {
    uint32_t slot;
    bool may_begin;  // else it fails, as what it comes after has
  };

  bool is_under_way(uint32_t slot) const { return entries_[slot].under_way; }
  // An operation that is no task. Precondition here and in begin(): not under way.
  void begin_other(uint32_t slot);
  // Somebody else sees to it that it goes on only after `before`; both are under way.
  void note_after(uint32_t slot, uint32_t before) { entries_[slot].after.push_back({before, entries_[before].number}); }
  // Whatever the verdict, it is under way until end(). `after`: slots, kEndedWell or kEndedBadly.
  Begun begin(uint32_t slot, std::span<const uint32_t> after, std::span<const Range> ranges);
  // Of any operation under way; tasks that this decides are appended.
  void end(uint32_t slot, bool well, std::vector<Decided>& decided);

 private:
  struct Name {
    uint32_t slot;
    uint64_t number;
  };
  struct Use {
    uint64_t end;
    bool writes;
    uint32_t slot;
  };
  using Uses = std::multimap<uint64_t, Use>;
  struct Entry {
    uint64_t number = 0;  // of operations begun; tells them apart in a slot
    bool under_way = false;
    bool ended_well = true;
    bool decided = false;
    uint32_t waits = 0;
    std::vector<Name> after;   // that were under way when it was begun
    std::vector<Name> before;  // tasks that wait for it
    std::vector<Uses::iterator> uses;
  };

  void open(uint32_t slot);
  bool is_current(const Name& name) const {
    return entries_[name.slot].under_way && entries_[name.slot].number == name.number;
  }
  std::optional<uint32_t> find_overlap(uint32_t slot, std::span<const Range> ranges) const;
  std::vector<bool> all_before(uint32_t slot) const;

  std::vector<Entry> entries_;
  Uses uses_;             // of tasks under way, by address
  uint64_t longest_ = 0;  // no use is longer
  uint64_t next_ = 1;
};

}  // namespace offpath::tasks
