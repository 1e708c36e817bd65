// SPDX-License-Identifier: BSD-3-Clause
// A collective's record part by part, for tests that then write lies into it.
#pragma once

#include "collective/collective.hpp"
#include "collective/record.hpp"

namespace offpath::collective::testing {

struct Raw {
  CollectiveRecord head;
  std::vector<Block> send, recv;
  std::vector<uint64_t> counts_bytes;
  std::vector<memory::LayoutRecord> layouts;
  std::vector<memory::Range> ranges;
};

// The counts of the head are those of the vectors.
inline std::vector<uint8_t> encode(Raw raw) {
  raw.head.send_count = static_cast<uint32_t>(raw.send.size());
  raw.head.recv_count = static_cast<uint32_t>(raw.recv.size());
  raw.head.counts_count = static_cast<uint32_t>(raw.counts_bytes.size());
  raw.head.layouts_count = static_cast<uint32_t>(raw.layouts.size());
  raw.head.ranges_count = static_cast<uint32_t>(raw.ranges.size());
  std::vector<uint8_t> out;
  base::RecordWriter writer(out);
  writer.write(raw.head);
  writer.write_all(std::span<const Block>(raw.send));
  writer.write_all(std::span<const Block>(raw.recv));
  writer.write_all(std::span<const uint64_t>(raw.counts_bytes));
  writer.write_all(std::span<const memory::LayoutRecord>(raw.layouts));
  writer.write_all(std::span<const memory::Range>(raw.ranges));
  return out;
}

// Something of everything: two blocks each way, counts, two layouts of one and two ranges.
inline Raw some() {
  Raw out{};
  out.head.kind = OFFPATH_EXCHANGE;
  out.send = {{0, 1, 0x1000, 8}, {1, 0, 0x2000, 12, 1}};
  out.recv = {{0, 1, 0x3000, 8, 2}, {1, 0, 0x4000, 12}};
  out.counts_bytes = {8, 12, 16};
  out.layouts = {{4, 8, 1, 0}, {8, 16, 2, 0}};
  out.ranges = {{0, 4}, {-4, 4}, {4, 4}};
  return out;
}

}  // namespace offpath::collective::testing
