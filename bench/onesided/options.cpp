// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "arguments/arguments.hpp"
#include "operation.hpp"

namespace bench {

const char* name(Target target) { return target == Target::idle ? "idle" : "computing"; }

std::string parse_options(int argc, char** argv, Options& options) {
  arguments::Arguments::Words<std::string> names;
  for (const NamedOperation& operation : operations()) names.emplace_back(operation.name, operation.name);
  arguments::Arguments known(
      "onesided",
      "One-sided operations, and how much of them hides behind computation of the origin. For each size and target:\n"
      "  t_pure     the operation and its completion (flush, quiet), nothing else\n"
      "  t_compute  a fixed amount of work, no communication\n"
      "  t_total    operation, the same work, completion\n"
      "Median over the repeats, of the slowest origin; efficiency = max(t_pure, t_compute) / t_total. The lower half\n"
      "of the ranks are origins, each has a target in the upper half; an even number of ranks is needed.");
  known.word("--operation", options.operation, names,
             "fetch_and_op has 8 bytes, put_rate is many puts before one completion");
  known.numbers("--sizes", options.sizes, 1, std::int64_t(1) << 30, "bytes of each message");
  known.words("--targets", options.targets,
              {{name(Target::idle), Target::idle}, {name(Target::computing), Target::computing}},
              "what the target does: idle waits in a barrier; computing calls its library between pieces of work only");
  known.number("--messages", options.messages, 1, 1000000, "of put_rate before one completion");
  known.number("--repeats", options.repeats, 1, 1000000, "measured repeats, the three kinds in turns");
  known.number("--warmup", options.warmup, 0, 1000000, "repeats before that");
  known.numbers("--work-iterations", options.work_iterations, 0, arguments::kUnlimited,
                "the origin's work for each row, as an earlier run reported it; without it the work is set once for "
                "each row so that it lasts about t_pure");
  known.number("--piece-iterations", options.piece_iterations, 1, arguments::kUnlimited,
               "a computing target's piece of work, as an earlier run reported it");
  known.number("--piece-ns", options.piece_ns, 1, arguments::kUnlimited, "the same, as a time");
  known.flag("--verify", options.verify,
             "checks all that is moved in every repeat, each with data of its own; the clock stands meanwhile");
  known.text("--json", options.json, "rank 0 writes the rows to that file");
  const std::string problem = known.parse(argc, argv);
  options.help = known.help();
  if (!problem.empty()) return problem;
  if (options.operation == "fetch_and_op" && options.sizes != std::vector<std::int64_t>{8})
    return "--sizes is not 8 (fetch_and_op works on 8 bytes). Leave it out, or use another operation";
  if (!options.work_iterations.empty() && options.work_iterations.size() != options.row_count())
    return "the amounts of work are not as many as the rows (one for each size and target is needed). Give " +
           std::to_string(options.row_count()) + " of them";
  return {};
}

}  // namespace bench
