// SPDX-License-Identifier: BSD-3-Clause
// Command line of bspmm.
#pragma once

#include <cstdint>
#include <string>

#include "../kit/options.hpp"
#include "kernel.hpp"
#include "store.hpp"

namespace bspmm {

enum class Who { own, tasks };
inline constexpr const char *kVariants[] = {"blocking", "nonblocking"}, *kWho[] = {"own", "tasks"};

struct Options : kit::Options {
  Options()
      : kit::Options(
            "bspmm",
            "Block-sparse matrix multiplication C += A * B by one-sided operations. The tiles are dealt round-robin to "
            "the\nranks; each takes work from a shared counter, gets tiles of A and B, multiplies them, and updates "
            "C.") {}
  int tile = number(tile, "--tile", 64, 1, 2048, "rows and columns of a tile");
  int tiles =
      number(tiles, "--tiles", 16, 1, 512, "rows and columns of the matrices in tiles; 3 of 8 tiles are not zero");
  Variant variant = word(variant, "--variant", Variant::nonblocking, kVariants,
                         "blocking: get, wait, multiply; nonblocking: the next tiles come meanwhile");
  Who who = word(who, "--products", Who::own, kWho,
                 "own: each rank multiplies its tiles; tasks: each product is a task (the program bspmm_tasks)");
  int unit = number(unit, "--unit", Store::adds() ? 1 : 0, 0, 512,
                    "products of one C tile that a rank takes at once; 0: all. With OpenSHMEM, which cannot add to "
                    "remote doubles, one rank makes a C tile, so it is 0");
  int repeats = number(repeats, "--repeats", 3, 1, 1000000, "timed runs");
  std::int64_t seed = number(seed, "--seed", 1, 0, kit::kUnlimited, "of the contents");
  bool check_product = flag(check_product, "--check", "compares C with a dense reference");
  std::string json = text(json, "--json", "rank 0 writes the times to that file");
  std::string field = text(field, "--field", "rank 0 writes what it multiplies there, as doubles");

 private:
  std::string check() override {
    if (Store::adds() || unit == 0) return {};
    return "--unit is not 0 (OpenSHMEM cannot add to remote doubles, so one rank makes a C tile). Leave it out";
  }
};

}  // namespace bspmm
