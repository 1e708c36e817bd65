// SPDX-License-Identifier: BSD-3-Clause
// Data to be compressed, by what is in it. The same each time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace offpath::testing {

inline std::vector<uint8_t> random_bytes(size_t bytes, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> out(bytes);
  for (auto& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}

inline std::vector<uint8_t> text_bytes(size_t bytes) {
  static const char kText[] = "the quick brown fox jumps over the lazy dog; ";
  std::vector<uint8_t> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(kText[i % (sizeof(kText) - 1)] + (i / 4096) % 3);
  return out;
}

// Doubles of a smooth field, of as many digits as a measurement has.
inline std::vector<uint8_t> smooth_doubles(size_t bytes) {
  std::vector<double> values(bytes / sizeof(double) + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) * 1e-3;
    values[i] = 1 + std::round(std::sin(x) * std::cos(3 * x) * (1 << 20)) / (1 << 20);
  }
  std::vector<uint8_t> out(bytes);
  std::memcpy(out.data(), values.data(), bytes);
  return out;
}

}  // namespace offpath::testing
