// SPDX-License-Identifier: BSD-3-Clause
// 64 bits as a text: readers of JSON round numbers of that size.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace report {

inline std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

}  // namespace report
