// SPDX-License-Identifier: BSD-3-Clause
// The three times of an operation that may hide behind computation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/json.hpp"
#include "../../apps/kit/ranks.hpp"
#include "work.hpp"

namespace bench {

// All at once, as in the measurement: the cores may share caches and clock. Then one amount for all ranks.
inline std::int64_t calibrate_together(std::int64_t ns) {
  kit::barrier();
  return std::max<std::int64_t>(1, kit::sum(calibrate_work(ns)) / kit::ranks());
}

inline std::string wrong_at(std::int64_t bytes) {
  return "wrong result at size " + std::to_string(bytes) + " (times mean nothing then). Report this";
}

struct Times {
  kit::Spread<std::int64_t> pure, compute, total;

  double efficiency() const {
    return total.median > 0 ? double(std::max(pure.median, compute.median)) / double(total.median) : 0;
  }
  void write(kit::Json& json) const {
    const std::pair<std::string, const kit::Spread<std::int64_t>&> all[] = {
        {"t_pure", pure}, {"t_compute", compute}, {"t_total", total}};
    for (const auto& [name, spread] : all) {
      json[name + "_ns"] = spread.median;
      json[name + "_min_ns"] = spread.min;
      json[name + "_max_ns"] = spread.max;
    }
    json["efficiency"] = efficiency();
  }
};

}  // namespace bench
