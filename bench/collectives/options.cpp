// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "arguments/arguments.hpp"
#include "../codecs/fields.hpp"
#include "operation.hpp"

namespace bench {

std::string parse_options(int argc, char** argv, Options& options) {
  arguments::Arguments::Words<std::string> names;
  for (const std::string& name : operations()) names.emplace_back(name, name);
  const Words program = words();
  options.name = program.usual;
  arguments::Arguments known(program.program, "How much of " + std::string(program.about) +
                                                  " hides behind computation. For each size:\n"
                                                  "  t_pure     the communication and its wait, nothing else\n"
                                                  "  t_compute  a fixed amount of work, no communication\n"
                                                  "  t_total    communication, the same work, wait\n"
                                                  "Maximum over the ranks, median over the repeats; efficiency = "
                                                  "max(t_pure, t_compute) / t_total.");
  known.word("--" + std::string(program.noun), options.name, names, program.names);
  known.numbers("--sizes", options.sizes, 1, std::int64_t(1) << 30, program.bytes);
  known.number("--repeats", options.repeats, 1, 1000000, "measured repeats, the three kinds in turns");
  known.number("--warmup", options.warmup, 0, 1000000, "repeats before that");
  known.number("--tests", options.tests, 0, 1000000, "calls of MPI_Testall, evenly spread over the work of t_total");
  known.numbers("--work-iterations", options.work_iterations, 0, arguments::kUnlimited,
                "the amount of work for each size, as an earlier run reported it; without it the work is set once for "
                "each size so that it lasts about t_pure");
  known.numbers("--work-ns", options.work_ns, 0, arguments::kUnlimited, "the same, as a time");
  known.flag("--verify", options.verify,
             "checks all that is received in every repeat, each with data of its own; the clock stands meanwhile");
  known.text("--field", options.field,
             "collectives that move data send doubles of a velocity, halo or tiles field, or random");
  known.text("--json", options.json, "rank 0 writes the rows to that file");
  const std::string problem = known.parse(argc, argv);
  options.help = known.help();
  if (!problem.empty()) return problem;
  if (!options.field.empty() && fields::make(options.field, 8).empty())
    return "'" + options.field + "' is no field (it is to be sent). Use velocity, halo, tiles, single, text or random";
  if (!options.work_iterations.empty() && !options.work_ns.empty())
    return "--work-iterations and --work-ns were both given (they say the same in two ways). Use one of them";
  for (const auto* work : {&options.work_iterations, &options.work_ns})
    if (!work->empty() && work->size() != options.sizes.size())
      return "the amounts of work are not as many as the sizes (one for each is needed). Give " +
             std::to_string(options.sizes.size()) + " of them";
  return {};
}

}  // namespace bench
