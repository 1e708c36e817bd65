// SPDX-License-Identifier: BSD-3-Clause
// offpath-machine [--cores A,B]: what this machine's memory and cores do, as JSON on stdout; every figure as
// {"median", "min", "max"} of several tries. The second core, if there is one, is the one that contends and answers.
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "measure.hpp"

namespace {

nlohmann::ordered_json to_json(const machine::Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

}  // namespace

int main(int argc, char** argv) {
  int cores[2] = {0, 0};
  if (argc == 3 && std::strcmp(argv[1], "--cores") == 0) {
    if (std::sscanf(argv[2], "%d,%d", &cores[0], &cores[1]) != 2) argc = 0;
  } else if (argc != 1) {
    argc = 0;
  }
  if (argc == 0) {
    std::fputs("offpath-machine: the arguments are not usable (needed: --cores A,B). Correct them\n", stderr);
    return 2;
  }
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
