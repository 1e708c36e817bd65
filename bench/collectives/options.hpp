// SPDX-License-Identifier: BSD-3-Clause
// Command line of the programs that measure what hides behind computation.
#pragma once

#include <cstdint>
#include <string>

#include "../../apps/kit/ranks.hpp"
#include "../codecs/fields.hpp"
#include "operation.hpp"

namespace bench {

struct Options : kit::Options {
  Options()
      : kit::Options(bench::words().program,
                     "How much of " + std::string(bench::words().about) +
                         " hides behind computation. For each size:\n"
                         "  t_pure     the communication and its wait, nothing else\n"
                         "  t_compute  a fixed amount of work, no communication\n"
                         "  t_total    communication, the same work, wait\n"
                         "Maximum over the ranks, median over the repeats; efficiency = max(t_pure, "
                         "t_compute) / t_total.") {}
  std::string name = word(name, bench::words().option, bench::words().usual, operations(), bench::words().names);
  Numbers sizes = numbers(sizes, "--sizes", {262144, 1048576}, 1, std::int64_t(1) << 30, bench::words().bytes);
  int repeats = number(repeats, "--repeats", 20, 1, 1000000, "measured repeats, the three kinds in turns");
  int warmup = number(warmup, "--warmup", 3, 0, 1000000, "repeats before that");
  int tests = number(tests, "--tests", 0, 0, 1000000, "calls of MPI_Testall, evenly spread over the work of t_total");
  Numbers work_iterations = numbers(work_iterations, "--work-iterations", {}, 0, kit::kUnlimited,
                                    "the amount of work for each size, as an earlier run reported it; without it the "
                                    "work is set once for each size so that it lasts about t_pure");
  Numbers work_ns = numbers(work_ns, "--work-ns", {}, 0, kit::kUnlimited, "the same, as a time");
  bool verify =
      flag(verify, "--verify",
           "checks all that is received in every repeat, each with data of its own; the clock stands meanwhile");
  std::string field =
      text(field, "--field", "collectives that move data send doubles of a velocity, halo or tiles field, or random");
  std::string json = text(json, "--json", "rank 0 writes the rows to that file");

 private:
  std::string check() override {
    if (!field.empty() && fields::make(field, 8).empty())
      return "'" + field + "' is no field (it is to be sent). Use velocity, halo, tiles, single, text or random";
    if (!work_iterations.empty() && !work_ns.empty())
      return "--work-iterations and --work-ns were both given (they say the same in two ways). Use one of them";
    for (const auto* work : {&work_iterations, &work_ns})
      if (!work->empty() && work->size() != sizes.size())
        return "the amounts of work are not as many as the sizes (one for each is needed). Give " +
               std::to_string(sizes.size()) + " of them";
    return refused(kit::ranks());
  }
};

}  // namespace bench
