#include "work.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "clocks.hpp"

namespace bench {

double work(std::int64_t iterations) {
  static std::array<double, 256> values = [] {
    std::array<double, 256> start{};
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = 1.0 + double(i) / 256;
    return start;
  }();
  // The logistic map stays bounded without ever settling: no denormal, no shortcut.
  for (std::int64_t n = 0; n < iterations; ++n)
    for (double& x : values) x = 3.7 * (x > 1 ? x - 1 : x) * (1 - (x > 1 ? x - 1 : x));
  volatile double sink = values[iterations & 255];
  return sink;
}

std::int64_t calibrate_work(std::int64_t ns) {
  constexpr std::int64_t kTryNs = 20'000'000;
  std::int64_t iterations = 64;
  std::int64_t took = 0;
  while (true) {
    const std::int64_t start = now_ns();
    work(iterations);
    took = now_ns() - start;
    if (took >= kTryNs) break;
    iterations *= 2;
  }
  for (int i = 0; i < 4; ++i) {
    const std::int64_t start = now_ns();
    work(iterations);
    took = std::min(took, now_ns() - start);
  }
  return std::max<std::int64_t>(1, std::llround(double(iterations) * double(ns) / double(took)));
}

}  // namespace bench
