// SPDX-License-Identifier: BSD-3-Clause
#include "work.hpp"

#include <algorithm>
#include <cmath>

#include "../../apps/kit/clocks.hpp"

namespace bench {

// One chain of dependent operations: what a neighbour on shared hardware does with the units a core shares changes its
// time little, so a difference seen is one of cycles taken away.
double work(std::int64_t iterations) {
  volatile double seed = 1.5;  // or the compiler would find the fixed point itself
  double x = seed;
  for (std::int64_t n = 0; n < iterations; ++n)
    for (int i = 0; i < 256; ++i) x = x * 0.999999 + 1e-6;
  volatile double sink = x;
  return sink;
}

std::int64_t calibrate_work(std::int64_t ns) {
  constexpr std::int64_t kTryNs = 20'000'000;
  std::int64_t iterations = 64;
  std::int64_t took = 0;
  while (true) {
    const std::int64_t start = kit::now_ns();
    work(iterations);
    took = kit::now_ns() - start;
    if (took >= kTryNs) break;
    iterations *= 2;
  }
  std::vector<std::int64_t> times(5);
  for (std::int64_t& time : times) {
    const std::int64_t start = kit::now_ns();
    work(iterations);
    time = kit::now_ns() - start;
  }
  took = kit::spread(times).median;
  return std::max<std::int64_t>(1, std::llround(double(iterations) * double(ns) / double(took)));
}

}  // namespace bench
