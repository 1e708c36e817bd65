// SPDX-License-Identifier: BSD-3-Clause
// Command line of the programs that measure what hides behind computation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Options {
  std::string name;                                  // of an operation
  std::vector<std::int64_t> sizes{262144, 1048576};  // bytes, see operation.hpp
  std::vector<std::int64_t> work_iterations;         // one for each size, or empty: calibrate
  std::vector<std::int64_t> work_ns;                 // the same, as a time that the work shall last
  int repeats = 20;
  int warmup = 3;
  int tests = 0;  // MPI_Test calls during the work
  bool verify = false;
  std::string field;  // what is sent; empty: something cheap
  std::string json;
  std::string help;  // to be shown instead of running
};

// Empty when the arguments are good, else one line for the user.
std::string parse_options(int argc, char** argv, Options& options);

}  // namespace bench
