// SPDX-License-Identifier: BSD-3-Clause
// offpath-machine [--cores A,B]: what this machine's memory and cores do, as JSON on stdout; every figure as
// {"median", "min", "max"} of several tries. The second core, if there is one, is the one that contends and answers.

#include <sched.h>

#include <cstdio>
#include <string>

#include "../../apps/kit/json.hpp"
#include "../../apps/kit/options.hpp"
#include "measure.hpp"

namespace {

struct Options : kit::Options {
  Options() : kit::Options("offpath-machine", "What this machine's memory and cores do, as JSON.") {}
  Numbers cores = numbers(cores, "--cores", {0, 0}, 0, CPU_SETSIZE - 1, "two of them; the second contends and answers");

 private:
  std::string check() override {
    return cores.size() == 2 ? "" : "--cores does not name two cores (both are measured). Use --cores A,B";
  }
};

kit::Json to_json(const machine::Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

int run(const Options& options) {
  const int second = int(options.cores[1]);
  kit::Json json = {{"cores", options.cores}};
  kit::pin(int(options.cores[0]));
  json["copy_bytes_per_ns"] = to_json(machine::copy_speed());
  json["reduce_bytes_per_ns"] = to_json(machine::reduce_speed());
  json["compute_flop_per_ns"] = to_json(machine::compute_speed());
  const auto cma = machine::cma_speed();
  if (cma) json["cma_bytes_per_ns"] = to_json(*cma);
  json["wake_ns"] = to_json(machine::wake_time(second));
  json["shared_copy_bytes_per_ns"] = to_json(machine::shared_copy_speed(second));
  std::puts(json.dump(1).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return kit::run(argc, argv, run); }
