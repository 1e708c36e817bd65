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

  void fill_header() const { describe_layout(header()); }
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
