#include "options.hpp"

#include <charconv>
#include <limits>

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
  return "usage: alltoall [--sizes B,B,...] [--repeats R] [--warmup W] [--collective ialltoall|ialltoallv]\n"
         "                [--work-iterations N,N,... | --work-ns N,N,...] [--verify] [--json FILE]\n"
         "\n"
         "How much of a nonblocking all-to-all hides behind computation. For each size:\n"
         "  t_pure     the collective and its wait, nothing else\n"
         "  t_compute  a fixed amount of work, no communication\n"
         "  t_total    collective, the same work, wait\n"
         "Maximum over the ranks, median over the repeats; efficiency = max(t_pure, t_compute) / t_total.\n"
         "\n"
         "  --sizes            bytes for each peer (262144,1048576)\n"
         "  --repeats          measured repeats, the three kinds in turns (20)\n"
         "  --warmup           repeats before that (3)\n"
         "  --collective       ialltoall, or ialltoallv with counts that differ by rank around the size (ialltoall)\n"
         "  --work-iterations  the amount of work for each size, as an earlier run reported it; without it the work\n"
         "                     is set once for each size so that it lasts about t_pure\n"
         "  --work-ns          the same, as a time\n"
         "  --verify           checks every received byte of the first repeat of each kind\n"
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
                       name == "--work-iterations" || name == "--work-ns" || name == "--json";
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
    if (name == "--collective") {
      if (text != "ialltoall" && text != "ialltoallv") return bad(name, text, "ialltoall or ialltoallv");
      options.vector_counts = text == "ialltoallv";
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
