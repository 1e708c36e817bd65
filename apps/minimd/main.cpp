// SPDX-License-Identifier: BSD-3-Clause
// Lennard-Jones molecular dynamics whose forces can be computed beside the rebuilding of its lists.
#include <string>

#include <mpi.h>

#include "../arguments/numbers_file.hpp"
#include "../arguments/speaker.hpp"
#include "domain.hpp"
#include "options.hpp"
#include "report.hpp"
#include "simulation.hpp"

namespace minimd {
namespace {

int run(int argc, char** argv) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const arguments::Speaker speaker("minimd", rank == 0);
  Options options;
  std::string problem = parse_options(argc, argv, options);
  if (const auto status = speaker.end(problem, options.help)) return *status;
  const Domain domain = make_domain(options.cells, Options::kDensity, ranks, rank);
  problem = check_domain(domain, options.reach());
  if (!problem.empty()) return speaker.complain(problem, arguments::kBadArguments);
  Simulation simulation(domain, options, problem);
  if (!problem.empty()) return speaker.complain(problem, arguments::kBadArguments);
  simulation.run();
  const Outcome outcome = gather(simulation, domain);
  if (rank == 0) {
    print_report(options, simulation, outcome);
    arguments::NumbersFile file(options.field);
    file.write(simulation.atoms().x.data(), std::size_t(3) * simulation.atoms().all());
    problem = file.close();
    if (problem.empty() && !options.json.empty()) problem = write_json(options, simulation, outcome);
    if (!problem.empty()) return speaker.complain(problem);
  }
  return outcome.complete ? 0 : arguments::kFailed;
}

}  // namespace
}  // namespace minimd

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  const int status = minimd::run(argc, argv);
  MPI_Finalize();
  return status;
}
