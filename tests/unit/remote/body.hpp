// SPDX-License-Identifier: BSD-3-Clause
// What a one-sided operation wants, with the data that goes along; and its record part by part, for tests that then
// write lies into it.
#pragma once

#include "remote/record.hpp"

namespace offpath::remote::testing {

struct Body : Wanted {
  std::vector<uint8_t> data;
};

inline std::vector<uint8_t> encode(const Body& body) {
  std::vector<uint8_t> out;
  remote::encode(body, body.data, out);
  return out;
}

struct Raw {
  RemoteRecord head;
  std::vector<memory::LayoutRecord> layouts;
  std::vector<memory::Range> ranges;
  std::vector<uint8_t> wanted;
};

// The counts of the head are those of the vectors.
inline std::vector<uint8_t> encode(Raw raw) {
  raw.head.layouts_count = static_cast<uint32_t>(raw.layouts.size());
  raw.head.ranges_count = static_cast<uint32_t>(raw.ranges.size());
  raw.head.wanted_bytes = static_cast<uint32_t>(raw.wanted.size());
  std::vector<uint8_t> out;
  base::RecordWriter writer(out);
  writer.write(raw.head);
  writer.write_all(std::span<const memory::LayoutRecord>(raw.layouts));
  writer.write_all(std::span<const memory::Range>(raw.ranges));
  writer.write_all(std::span<const uint8_t>(raw.wanted));
  return out;
}

// Something of everything: what is wanted of the target is bytes here.
inline Raw some() {
  Raw out{};
  out.head.target = 1;
  out.head.send = {0, 0, 0x1000, 8, 2};
  out.layouts = {{4, 8, 1, 0}, {8, 16, 2, 0}};
  out.ranges = {{0, 4}, {-4, 4}, {4, 4}};
  out.wanted = {1, 2, 3, 4, 5, 6, 7, 8};
  return out;
}

}  // namespace offpath::remote::testing
