// SPDX-License-Identifier: BSD-3-Clause
// Command line of bspmm.
#pragma once

#include <cstdint>
#include <string>

#include "kernel.hpp"

namespace bspmm {

struct Options {
  int tile = 64;
  int tiles = 16;
  Variant variant = Variant::nonblocking;
  int unit = 0;  // products in a unit of work; 0: all of a C tile
  int repeats = 3;
  std::int64_t seed = 1;
  bool check = false;
  std::string json, field;
  std::string help;  // to be shown instead of running
};

const char* name(Variant variant);

// Empty when the arguments are good, else one line for the user.
std::string parse_options(int argc, char** argv, Options& options);

}  // namespace bspmm
