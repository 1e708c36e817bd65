// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "operation.hpp"

namespace bench {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

bool parse_number(const std::string& text, std::int64_t lowest, std::int64_t highest, std::int64_t& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && value >= lowest && value <= highest;
}

bool parse_list(const std::string& text, std::int64_t lowest, std::int64_t highest, std::vector<std::int64_t>& values) {
  values.clear();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::int64_t value = 0;
    if (!parse_number(text.substr(begin, end - begin), lowest, highest, value)) return false;
    values.push_back(value);
    begin = end + 1;
  }
  return !values.empty();
}

std::string bad(const std::string& name, const std::string& text, const std::string& needed) {
  return name + " '" + text + "' is not usable (needed: " + needed + "). Give another value";
}

}  // namespace

const char* usage() {
  return "usage: collectives [--collective NAME] [--sizes B,B,...] [--repeats R] [--warmup W] [--tests N]\n"
         "                   [--work-iterations N,N,... | --work-ns N,N,...] [--verify] [--json FILE]\n"
         "\n"
         "How much of a nonblocking collective hides behind computation. For each size:\n"
         "  t_pure     the collective and its wait, nothing else\n"
         "  t_compute  a fixed amount of work, no communication\n"
         "  t_total    collective, the same work, wait\n"
         "Maximum over the ranks, median over the repeats; efficiency = max(t_pure, t_compute) / t_total.\n"
         "\n"
         "  --collective       ialltoall, ialltoallv, iallgather, iallgatherv, igather, iscatter, ibcast, ireduce,\n"
         "                     iallreduce, ireduce_scatter, ireduce_scatter_block, iscan, iexscan (ialltoall);\n"
         "                     the v forms with counts that differ by rank around the average\n"
         "  --sizes            all bytes that a rank sends or receives, whichever is more (262144,1048576)\n"
         "  --repeats          measured repeats, the three kinds in turns (20)\n"
         "  --warmup           repeats before that (3)\n"
         "  --tests            calls of MPI_Test, evenly spread over the work of t_total (0)\n"
         "  --work-iterations  the amount of work for each size, as an earlier run reported it; without it the work\n"
         "                     is set once for each size so that it lasts about t_pure\n"
         "  --work-ns          the same, as a time\n"
         "  --verify           checks all that is received once for each kind, before the clock runs\n"
         "  --json             rank 0 writes the rows there\n";
}

std::string parse_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      options.help = true;
      return {};
    }
    if (name == "--verify") {
      options.verify = true;
      continue;
    }
    const bool known = name == "--sizes" || name == "--repeats" || name == "--warmup" || name == "--collective" ||
                       name == "--tests" || name == "--work-iterations" || name == "--work-ns" || name == "--json";
    if (!known) return "unknown option '" + name + "' (nothing was run). Use --help to see the options";
    if (i + 1 == argc) return "option " + name + " has no value (it takes one). Use " + name + " VALUE";
    const std::string text = argv[++i];
    std::int64_t number = 0;
    if (name == "--json") options.json = text;
    if (name == "--sizes" && !parse_list(text, 1, std::int64_t(1) << 30, options.sizes))
      return bad(name, text, "bytes from 1 to 1073741824, separated by commas");
    if (name == "--work-iterations" && !parse_list(text, 0, kAny, options.work_iterations))
      return bad(name, text, "whole numbers separated by commas");
    if (name == "--work-ns" && !parse_list(text, 0, kAny, options.work_ns))
      return bad(name, text, "whole numbers of nanoseconds separated by commas");
    if (name == "--repeats") {
      if (!parse_number(text, 1, 1000000, number)) return bad(name, text, "a whole number from 1 to 1000000");
      options.repeats = int(number);
    }
    if (name == "--warmup") {
      if (!parse_number(text, 0, 1000000, number)) return bad(name, text, "a whole number from 0 to 1000000");
      options.warmup = int(number);
    }
    if (name == "--tests") {
      if (!parse_number(text, 0, 1000000, number)) return bad(name, text, "a whole number from 0 to 1000000");
      options.tests = int(number);
    }
    if (name == "--collective") {
      const std::vector<std::string> names = collectives();
      if (std::find(names.begin(), names.end(), text) == names.end())
        return bad(name, text, "one of those that --help lists");
      options.collective = text;
    }
  }
  if (!options.work_iterations.empty() && !options.work_ns.empty())
    return "--work-iterations and --work-ns were both given (they say the same in two ways). Use one of them";
  for (const auto* work : {&options.work_iterations, &options.work_ns})
    if (!work->empty() && work->size() != options.sizes.size())
      return "the amounts of work are not as many as the sizes (one for each is needed). Give " +
             std::to_string(options.sizes.size()) + " of them";
  return {};
}

}  // namespace bench
