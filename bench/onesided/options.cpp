// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>

#include "operation.hpp"

namespace bench {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLargest = std::int64_t(1) << 30;

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    all.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

template <class Number>
bool parse_number(const std::string& text, std::int64_t lowest, std::int64_t highest, Number& value) {
  std::int64_t parsed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  if (error != std::errc{} || stop != end || parsed < lowest || parsed > highest) return false;
  value = Number(parsed);
  return true;
}

bool parse_numbers(const std::string& text, std::int64_t lowest, std::int64_t highest,
                   std::vector<std::int64_t>& values) {
  values.clear();
  for (const std::string& word : words(text))
    if (!parse_number(word, lowest, highest, values.emplace_back())) return false;
  return true;
}

bool parse_targets(const std::string& text, std::vector<Target>& targets) {
  targets.clear();
  for (const std::string& word : words(text)) {
    if (word != name(Target::idle) && word != name(Target::computing)) return false;
    targets.push_back(word == name(Target::idle) ? Target::idle : Target::computing);
  }
  return true;
}

bool known_operation(const std::string& text) {
  return std::any_of(operations().begin(), operations().end(), [&](const auto& each) { return text == each.name; });
}

struct Option {
  std::string needed;
  std::function<bool(const std::string&)> parse;
};

std::map<std::string, Option> table(Options& options) {
  const std::string count = "a whole number from 1 to 1000000";
  const auto number = [](auto& value, std::int64_t lowest, std::int64_t highest) {
    return [&value, lowest, highest](const std::string& text) { return parse_number(text, lowest, highest, value); };
  };
  return {
      {"--operation",
       {"one of those that --help lists",
        [&](const std::string& text) {
          options.operation = text;
          return known_operation(text);
        }}},
      {"--targets",
       {"idle, computing or both, separated by a comma",
        [&](const std::string& text) { return parse_targets(text, options.targets); }}},
      {"--sizes",
       {"bytes from 1 to 1073741824, separated by commas",
        [&](const std::string& text) { return parse_numbers(text, 1, kLargest, options.sizes); }}},
      {"--work-iterations",
       {"whole numbers separated by commas",
        [&](const std::string& text) { return parse_numbers(text, 0, kAny, options.work_iterations); }}},
      {"--piece-iterations", {"a whole number over 0", number(options.piece_iterations, 1, kAny)}},
      {"--piece-ns", {"a whole number of nanoseconds over 0", number(options.piece_ns, 1, kAny)}},
      {"--messages", {count, number(options.messages, 1, 1000000)}},
      {"--repeats", {count, number(options.repeats, 1, 1000000)}},
      {"--warmup", {"a whole number from 0 to 1000000", number(options.warmup, 0, 1000000)}},
      {"--json",
       {"a file",
        [&](const std::string& text) {
          options.json = text;
          return !text.empty();
        }}},
  };
}

}  // namespace

const char* name(Target target) { return target == Target::idle ? "idle" : "computing"; }

const char* usage() {
  return "usage: onesided [--operation NAME] [--sizes B,B,...] [--targets idle,computing] [--messages N] [--repeats "
         "R]\n"
         "                [--warmup W] [--work-iterations N,N,...] [--piece-iterations N | --piece-ns N] [--verify]\n"
         "                [--json FILE]\n"
         "\n"
         "One-sided operations, and how much of them hides behind computation of the origin. For each size and "
         "target:\n"
         "  t_pure     the operation and its completion (flush, quiet), nothing else\n"
         "  t_compute  a fixed amount of work, no communication\n"
         "  t_total    operation, the same work, completion\n"
         "Median over the repeats, of the slowest origin; efficiency = max(t_pure, t_compute) / t_total. The lower "
         "half\n"
         "of the ranks are origins, each has a target in the upper half; an even number of ranks is needed.\n"
         "\n"
         "  --operation         put, get, fetch_and_op (8 bytes), put_rate: many puts before one completion (put)\n"
         "  --sizes             bytes of each message (8)\n"
         "  --targets           what the target does: idle waits in a barrier; computing calls its library between\n"
         "                      pieces of work only (idle,computing)\n"
         "  --messages          of put_rate before one completion (64)\n"
         "  --repeats           measured repeats, the three kinds in turns (20)\n"
         "  --warmup            repeats before that (3)\n"
         "  --work-iterations   the origin's work for each row, as an earlier run reported it; without it the work is\n"
         "                      set once for each row so that it lasts about t_pure\n"
         "  --piece-iterations  a computing target's piece of work, as an earlier run reported it\n"
         "  --piece-ns          the same, as a time (10000000)\n"
         "  --verify            checks all that is moved, before the clock runs\n"
         "  --json              rank 0 writes the rows there\n";
}

std::string parse_options(int argc, char** argv, Options& options) {
  const std::map<std::string, Option> known = table(options);
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
    const auto option = known.find(name);
    if (option == known.end()) return "unknown option '" + name + "' (nothing was run). Use --help to see the options";
    if (i + 1 == argc) return "option " + name + " has no value (it takes one). Use " + name + " VALUE";
    const std::string text = argv[++i];
    if (!option->second.parse(text))
      return name + " '" + text + "' is not usable (needed: " + option->second.needed + "). Give another value";
  }
  if (options.operation == "fetch_and_op" && options.sizes != std::vector<std::int64_t>{8})
    return "--sizes is not 8 (fetch_and_op works on 8 bytes). Leave it out, or use another operation";
  if (!options.work_iterations.empty() && options.work_iterations.size() != options.row_count())
    return "the amounts of work are not as many as the rows (one for each size and target is needed). Give " +
           std::to_string(options.row_count()) + " of them";
  return {};
}

}  // namespace bench
