// SPDX-License-Identifier: BSD-3-Clause
// Lennard-Jones molecular dynamics whose forces can be computed beside the rebuilding of its lists.
#include <string>

#include "../kit/ranks.hpp"
#include "../kit/report.hpp"
#include "report.hpp"

namespace minimd {
namespace {

int run(const Options& options) {
  const Domain domain = make_domain(options.cells, Options::kDensity, kit::ranks(), kit::rank());
  std::string problem = check_domain(domain, options.reach());
  if (!problem.empty()) return options.complain(problem, kit::kBadArguments);
  Simulation simulation(domain, options, problem);
  if (!problem.empty()) return options.complain(problem, kit::kBadArguments);
  simulation.run();
  const Outcome outcome = gather(simulation);
  if (options.speaks()) {
    kit::NumbersFile file(options.field);
    file.write(simulation.atoms().x.data(), std::size_t(3) * simulation.atoms().all());
    const std::string unwritten = report(options, simulation, outcome);
    problem = file.close();
    if (problem.empty()) problem = unwritten;
  }
  return options.end(outcome.complete, problem);
}

}  // namespace
}  // namespace minimd

int main(int argc, char** argv) { return kit::run_ranks(argc, argv, minimd::run, kit::Threads::serialized); }
