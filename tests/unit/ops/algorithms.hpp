// SPDX-License-Identifier: BSD-3-Clause
// Every algorithm there is.
#pragma once

#include "ops/collectives/collective.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace offpath::testing {

struct Algorithm {
  offpath_collective_kind_t kind;
  offpath_algorithm_t algorithm;
  const char* name;
};

inline constexpr Algorithm kAlgorithms[] = {
#define OFFPATH_EXPANSION(kind, NAME, from, function) {OFFPATH_##kind, OFFPATH_ALGORITHM_##NAME, #kind "_" #NAME},
#include <offpath/words/algorithms.def>
};

inline std::string name_of(const ::testing::TestParamInfo<Algorithm>& info) {
  std::string name = info.param.name;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

inline std::vector<Algorithm> reductions() {
  std::vector<Algorithm> found;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.kind >= OFFPATH_REDUCE) found.push_back(algorithm);
  }
  return found;
}

}  // namespace offpath::testing
