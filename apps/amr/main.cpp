// SPDX-License-Identifier: BSD-3-Clause
// Shallow water in patches that are refined where the surface is steep, so that the ranks' work moves with the waves.
#include <string>

#include "../kit/ranks.hpp"
#include "report.hpp"

namespace amr {
namespace {

int run(const Options& options) {
  std::string problem;
  Simulation simulation(options, kit::rank(), kit::ranks(), problem);
  if (!problem.empty()) return options.complain(problem, kit::kBadArguments);
  simulation.begin();
  const Water before = measure(simulation, options.scene);
  simulation.run();
  const Outcome outcome = gather(simulation, before, options);
  return options.end(outcome.good(options), options.speaks() ? report(options, outcome) : "");
}

}  // namespace
}  // namespace amr

int main(int argc, char** argv) { return kit::run_ranks(argc, argv, amr::run); }
