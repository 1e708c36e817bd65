// SPDX-License-Identifier: BSD-3-Clause
// offpath-machine [--cores A,B]: what this machine's memory and cores do, as JSON on stdout; every figure as
// {"median", "min", "max"} of several tries. The second core, if there is one, is the one that contends and answers.
#include <nlohmann/json.hpp>

#include <sched.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "arguments/arguments.hpp"
#include "measure.hpp"

namespace {

nlohmann::ordered_json to_json(const machine::Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::int64_t> given = {0, 0};
  arguments::Arguments known("offpath-machine", "What this machine's memory and cores do, as JSON.");
  known.numbers("--cores", given, 0, CPU_SETSIZE - 1, "two of them; the second contends and answers");
  std::string problem = known.parse(argc, argv);
  if (problem.empty() && given.size() != 2)
    problem = "--cores does not name two cores (both are measured). Use --cores A,B";
  if (!problem.empty()) {
    std::fprintf(stderr, "offpath-machine: %s\n", problem.c_str());
    return 2;
  }
  if (!known.help().empty()) {
    std::fputs(known.help().c_str(), stdout);
    return 0;
  }
  const int cores[2] = {static_cast<int>(given[0]), static_cast<int>(given[1])};
  nlohmann::ordered_json json = {{"cores", {cores[0], cores[1]}}};
  machine::pin(cores[0]);
  json["copy_bytes_per_ns"] = to_json(machine::copy_speed());
  json["reduce_bytes_per_ns"] = to_json(machine::reduce_speed());
  json["compute_flop_per_ns"] = to_json(machine::compute_speed());
  const auto cma = machine::cma_speed();
  if (cma) json["cma_bytes_per_ns"] = to_json(*cma);
  json["wake_ns"] = to_json(machine::wake_time(cores[1]));
  json["shared_copy_bytes_per_ns"] = to_json(machine::shared_copy_speed(cores[1]));
  std::puts(json.dump(1).c_str());
  return 0;
}
