// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <charconv>
#include <limits>

namespace bspmm {
namespace {

struct Number {
  const char* option;
  std::int64_t lowest, highest;
};
constexpr Number kNumbers[] = {
    {"--tile", 1, 2048},
    {"--tiles", 1, 512},
    {"--unit", 0, 512},
    {"--repeats", 1, 1000000},
    {"--seed", 0, std::numeric_limits<std::int64_t>::max()},
};

bool parse_number(const std::string& text, const Number& limits, std::int64_t& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && value >= limits.lowest && value <= limits.highest;
}

std::string bad(const std::string& option, const std::string& text, const std::string& needed) {
  return option + " '" + text + "' is not usable (" + needed + " is needed). Give another value";
}

}  // namespace

const char* name(Variant variant) { return variant == Variant::blocking ? "blocking" : "nonblocking"; }

const char* usage() {
  return "usage: bspmm [--tile T] [--tiles N] [--variant blocking|nonblocking] [--unit P] [--repeats R] [--seed S]\n"
         "             [--check] [--json FILE]\n"
         "\n"
         "Block-sparse matrix multiplication C += A * B by one-sided operations. The tiles are dealt round-robin to "
         "the\n"
         "ranks; each takes work from a shared counter, gets tiles of A and B, multiplies them, and updates C.\n"
         "\n"
         "  --tile T      rows and columns of a tile (64)\n"
         "  --tiles N     rows and columns of the matrices in tiles; 3 of 8 tiles are not zero (16)\n"
         "  --variant     blocking: get, wait, multiply; nonblocking: the next tiles come meanwhile (nonblocking)\n"
         "  --unit P      products of one C tile that a rank takes at once; 0: all. With OpenSHMEM, which cannot add "
         "to\n"
         "                remote doubles, one rank makes a C tile, so it is 0 (1 with MPI)\n"
         "  --repeats R   timed runs (3)\n"
         "  --seed S      of the contents (1)\n"
         "  --check       compares C with a dense reference\n"
         "  --json FILE   rank 0 writes the times there\n";
}

std::string parse_options(int argc, char** argv, Options& options) {
  options.unit = Store::adds() ? 1 : 0;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help" || option == "-h") {
      options.help = true;
      return {};
    }
    if (option == "--check") {
      options.check = true;
      continue;
    }
    const Number* number = nullptr;
    for (const Number& each : kNumbers)
      if (option == each.option) number = &each;
    if (!number && option != "--variant" && option != "--json")
      return "unknown option '" + option + "' (nothing was run). Use --help to see the options";
    if (i + 1 == argc) return "option " + option + " has no value (it takes one). Use " + option + " VALUE";
    const std::string text = argv[++i];
    std::int64_t value = 0;
    if (number && !parse_number(text, *number, value))
      return bad(option, text,
                 "a whole number from " + std::to_string(number->lowest) + " to " + std::to_string(number->highest));
    if (option == "--tile") options.tile = int(value);
    if (option == "--tiles") options.tiles = int(value);
    if (option == "--unit") options.unit = int(value);
    if (option == "--repeats") options.repeats = int(value);
    if (option == "--seed") options.seed = value;
    if (option == "--json") options.json = text;
    if (option == "--variant") {
      if (text != name(Variant::blocking) && text != name(Variant::nonblocking))
        return bad(option, text, "blocking or nonblocking");
      options.variant = text == name(Variant::blocking) ? Variant::blocking : Variant::nonblocking;
    }
  }
  if (!Store::adds() && options.unit != 0)
    return "--unit is not 0 (OpenSHMEM cannot add to remote doubles, so one rank makes a C tile). Leave it out";
  return {};
}

}  // namespace bspmm
