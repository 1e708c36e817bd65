// SPDX-License-Identifier: BSD-3-Clause
// Command line of the one-sided benchmark.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

enum class Target { idle, computing };
const char* name(Target target);

struct Options {
  std::string operation = "put";
  std::vector<Target> targets{Target::idle, Target::computing};
  std::vector<std::int64_t> sizes{8};         // bytes of each message
  std::vector<std::int64_t> work_iterations;  // one for each row (sizes, for each the targets), or empty: calibrate
  std::int64_t piece_iterations = 0;          // of a computing target between two calls; 0: calibrate
  std::int64_t piece_ns = 10'000'000;         // the same, as a time that it shall last
  int messages = 64;                          // of a rate
  int repeats = 20;
  int warmup = 3;
  bool verify = false;
  std::string json;
  std::string help;  // to be shown instead of running

  std::size_t row_count() const { return sizes.size() * targets.size(); }
};

// Empty when the arguments are good, else one line for the user.
std::string parse_options(int argc, char** argv, Options& options);

}  // namespace bench
