// SPDX-License-Identifier: BSD-3-Clause
// Shallow water in patches that are refined where the surface is steep, so that the ranks' work moves with the waves.
#include <string>

#include <mpi.h>

#include "../arguments/speaker.hpp"
#include "options.hpp"
#include "report.hpp"
#include "results.hpp"
#include "simulation.hpp"

namespace amr {
namespace {

int run(int argc, char** argv) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const arguments::Speaker speaker("amr", rank == 0);
  Options options;
  std::string problem = parse_options(argc, argv, options);
  if (const auto status = speaker.end(problem, options.help)) return *status;
  Simulation simulation(options, rank, ranks, problem);
  if (!problem.empty()) return speaker.complain(problem, arguments::kBadArguments);
  simulation.begin();
  const Water before = measure(simulation, options.scene);
  simulation.run();
  const Outcome outcome = gather(simulation, before, options);
  if (rank == 0) {
    print_report(options, outcome);
    if (!options.json.empty()) problem = write_json(options, outcome);
    if (!problem.empty()) return speaker.complain(problem);
  }
  return outcome.good(options) ? 0 : arguments::kFailed;
}

}  // namespace
}  // namespace amr

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = amr::run(argc, argv);
  MPI_Finalize();
  return status;
}
