// SPDX-License-Identifier: BSD-3-Clause
// Shallow water in patches that are refined where the surface is steep, so that the ranks' work moves with the waves.
#include <cstdio>
#include <string>

#include <mpi.h>

#include "options.hpp"
#include "report.hpp"
#include "results.hpp"
#include "simulation.hpp"

namespace amr {
namespace {

constexpr int kBadArguments = 2, kFailed = 1;

int complain(int rank, const std::string& problem, int status) {
  if (rank == 0) std::fprintf(stderr, "amr: %s\n", problem.c_str());
  return status;
}

int run(int argc, char** argv) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options;
  std::string problem = parse_options(argc, argv, options);
  if (problem.empty() && !options.help.empty()) {
    if (rank == 0) std::fputs(options.help.c_str(), stdout);
    return 0;
  }
  if (!problem.empty()) return complain(rank, problem, kBadArguments);
  Simulation simulation(options, rank, ranks, problem);
  if (!problem.empty()) return complain(rank, problem, kBadArguments);
  simulation.begin();
  const Water before = measure(simulation, options.scene);
  simulation.run();
  const Outcome outcome = gather(simulation, before, options);
  if (rank == 0) {
    print_report(options, outcome);
    if (!options.json.empty()) problem = write_json(options, outcome);
    if (!problem.empty()) return complain(rank, problem, kFailed);
  }
  return outcome.good(options) ? 0 : kFailed;
}

}  // namespace
}  // namespace amr

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = amr::run(argc, argv);
  MPI_Finalize();
  return status;
}
