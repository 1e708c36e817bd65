// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "arguments/arguments.hpp"

namespace bspmm {

const char* name(Variant variant) { return variant == Variant::blocking ? "blocking" : "nonblocking"; }

std::string parse_options(int argc, char** argv, Options& options) {
  options.unit = Store::adds() ? 1 : 0;
  arguments::Arguments known(
      "bspmm",
      "Block-sparse matrix multiplication C += A * B by one-sided operations. The tiles are dealt round-robin to the\n"
      "ranks; each takes work from a shared counter, gets tiles of A and B, multiplies them, and updates C.");
  known.number("--tile", options.tile, 1, 2048, "rows and columns of a tile");
  known.number("--tiles", options.tiles, 1, 512,
               "rows and columns of the matrices in tiles; 3 of 8 tiles are not zero");
  known.word("--variant", options.variant,
             {{name(Variant::blocking), Variant::blocking}, {name(Variant::nonblocking), Variant::nonblocking}},
             "blocking: get, wait, multiply; nonblocking: the next tiles come meanwhile");
  known.number("--unit", options.unit, 0, 512,
               "products of one C tile that a rank takes at once; 0: all. With OpenSHMEM, which cannot add to remote "
               "doubles, one rank makes a C tile, so it is 0");
  known.number("--repeats", options.repeats, 1, 1000000, "timed runs");
  known.number("--seed", options.seed, 0, arguments::kUnlimited, "of the contents");
  known.flag("--check", options.check, "compares C with a dense reference");
  known.text("--json", options.json, "rank 0 writes the times to that file");
  known.text("--field", options.field, "rank 0 writes what it multiplies there, as doubles");
  std::string problem = known.parse(argc, argv);
  options.help = known.help();
  if (problem.empty() && !Store::adds() && options.unit != 0)
    problem = "--unit is not 0 (OpenSHMEM cannot add to remote doubles, so one rank makes a C tile). Leave it out";
  return problem;
}

}  // namespace bspmm
