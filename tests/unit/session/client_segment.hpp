// SPDX-License-Identifier: BSD-3-Clause
// A session segment as an honest client makes it, for tests that then write lies into it.
#pragma once

#include "base/memfd.hpp"
#include "session/segment_view.hpp"

#include <unistd.h>

#include <cstring>
#include <utility>

namespace offpath::session::testing {

inline void append(std::vector<uint8_t>& out, const void* from, size_t bytes) {
  const auto* begin = static_cast<const uint8_t*>(from);
  out.insert(out.end(), begin, begin + bytes);
}
template <typename T>
void append_all(std::vector<uint8_t>& out, const std::vector<T>& values) {
  if (!values.empty()) append(out, values.data(), values.size() * sizeof(T));
}

// The bytes of a collective's record; the counts of the head are those of the vectors.
inline std::vector<uint8_t> encode_collective(CollectiveArguments arguments) {
  arguments.head.send_count = static_cast<uint32_t>(arguments.send.size());
  arguments.head.recv_count = static_cast<uint32_t>(arguments.recv.size());
  arguments.head.counts_count = static_cast<uint32_t>(arguments.counts_bytes.size());
  arguments.head.layouts_count = static_cast<uint32_t>(arguments.layouts.size());
  arguments.head.ranges_count = static_cast<uint32_t>(arguments.ranges.size());
  std::vector<uint8_t> out;
  append(out, &arguments.head, sizeof(arguments.head));
  append_all(out, arguments.send);
  append_all(out, arguments.recv);
  append_all(out, arguments.counts_bytes);
  append_all(out, arguments.layouts);
  append_all(out, arguments.ranges);
  return out;
}

// Something of everything: two blocks each way, counts, two layouts of one and two ranges.
inline CollectiveArguments some_collective() {
  CollectiveArguments out{};
  out.head.kind = OFFPATH_EXCHANGE;
  out.send = {{0, 1, 0x1000, 8, 0, 0}, {1, 0, 0x2000, 12, 1, 0}};
  out.recv = {{0, 1, 0x3000, 8, 2, 0}, {1, 0, 0x4000, 12, 0, 0}};
  out.counts_bytes = {8, 12, 16};
  out.layouts = {{4, 8, 1, 0}, {8, 16, 2, 0}};
  out.ranges = {{0, 4}, {-4, 4}, {4, 4}};
  return out;
}

// The bytes of a one-sided operation's record, likewise.
inline std::vector<uint8_t> encode_remote(RemoteArguments arguments) {
  arguments.head.layouts_count = static_cast<uint32_t>(arguments.layouts.size());
  arguments.head.ranges_count = static_cast<uint32_t>(arguments.ranges.size());
  arguments.head.wanted_bytes = static_cast<uint32_t>(arguments.wanted.size());
  std::vector<uint8_t> out;
  append(out, &arguments.head, sizeof(arguments.head));
  append_all(out, arguments.layouts);
  append_all(out, arguments.ranges);
  append_all(out, arguments.wanted);
  return out;
}

// Something of everything: what is wanted of the target is bytes here.
inline RemoteArguments some_remote() {
  RemoteArguments out{};
  out.head.target = 1;
  out.head.send = {0, 0, 0x1000, 8, 2, 0};
  out.layouts = {{4, 8, 1, 0}, {8, 16, 2, 0}};
  out.ranges = {{0, 4}, {-4, 4}, {4, 4}};
  out.wanted = {1, 2, 3, 4, 5, 6, 7, 8};
  return out;
}

struct ClientSegment {
  ClientSegment() { fill_header(); }

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(memory.data()); }
  Slot& slot(uint32_t index) const { return reinterpret_cast<Slot*>(memory.data() + kSlotsOffset)[index]; }
  template <typename T>
  T& at(uint64_t offset) const {
    return *reinterpret_cast<T*>(memory.data() + offset);
  }
  void write(uint64_t offset, const std::vector<uint8_t>& bytes) const {
    memcpy(memory.data() + offset, bytes.data(), bytes.size());
  }

  void fill_header() const {
    SegmentHeader& head = header();
    head.magic = kMagic;
    head.version = kVersion;
    head.slot_count = kSlotCount;
    head.segment_bytes = kSegmentBytes;
    head.ring_offset = kRingOffset;
    head.slots_offset = kSlotsOffset;
    head.arena_offset = kArenaOffset;
  }
  void submit(uint32_t index) const {
    const uint32_t position = header().submitted.load();
    reinterpret_cast<Atomic32*>(memory.data() + kRingOffset)[position % kSlotCount].store(index);
    header().submitted.store(position + 1);
  }
  // As the service maps it.
  base::Memfd other_mapping() const {
    return std::move(base::Memfd::adopt(base::Fd(dup(memory.fd())), kSegmentBytes).value());
  }

  base::Memfd memory = std::move(base::Memfd::create("test", kSegmentBytes).value());
};

}  // namespace offpath::session::testing
