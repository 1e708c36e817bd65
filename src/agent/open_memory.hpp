// SPDX-License-Identifier: BSD-3-Clause
// OpenMemory: what a client has given to Offpath: buffers of the operations under way, windows, memory that it was lent. An
// agent serves nothing else of its client's process, whatever the service asks for. One thread.
#pragma once

#include "memory/port.hpp"
#include "session/segment_view.hpp"

#include <map>
#include <optional>
#include <unordered_map>

namespace offpath::agent {

// Where the bytes of a block lie: elements of a layout one after the other.
class Footprint {
 public:
  // Contiguous.
  Footprint(uint64_t address, uint64_t bytes);
  // `bytes` of data from there on. Nothing: it leaves the address space.
  static std::optional<Footprint> of(const memory::Block& block, const std::vector<memory::Layout>& layouts);

  uint64_t begin() const { return begin_; }  // all of it lies there
  uint64_t end() const { return end_; }
  // How many bytes from there on are its own without a gap, at least; 0: that one is not.
  uint64_t covered(uint64_t address) const;

 private:
  Footprint() = default;
  uint64_t begin_ = 0, end_ = 0;
  // Of layouts: `count` elements from `base` on, each with these ranges, by offset.
  uint64_t base_ = 0, extent_ = 0, count_ = 0, span_ = 0, longest_ = 0;
  std::vector<memory::Range> ranges_;
};

class OpenMemory {
 public:
  explicit OpenMemory(const session::SegmentView& view) : lent_(view.shared_address(), view.shared_bytes()) {}

  // What the client has put into that slot begins ...
  void begin(const session::SegmentView& view, uint32_t slot);
  // ... and has ended.
  void end(uint32_t slot);
  bool covers(uint64_t address, uint64_t bytes) const;

 private:
  using Footprints = std::multimap<uint64_t, Footprint>;  // by begin
  void open(uint32_t slot, Footprint footprint);
  const Footprint* find(uint64_t address) const;

  struct Region {
    uint64_t address = 0;  // that it is detached by
    Footprint footprint;
  };
  struct Ending {
    uint64_t window = 0;
    std::optional<uint64_t> address;  // of all of it
  };
  Footprint lent_;
  Footprints operations_;
  uint64_t longest_ = 0;  // of the footprints since there were none
  std::unordered_map<uint32_t, std::vector<Footprints::iterator>> by_slot_;
  std::multimap<uint64_t, Region> windows_;       // by offset of the record
  std::unordered_map<uint32_t, Ending> endings_;  // by slot that closes or detaches
  mutable const Footprint* last_ = nullptr;       // chunks of one block come one after the other
};

// That memory, as far as it is open.
std::shared_ptr<memory::Port> guarded(std::shared_ptr<memory::Port> memory, std::shared_ptr<const OpenMemory> open);

}  // namespace offpath::agent
