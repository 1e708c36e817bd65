// A 3-D FFT of several variables over slabs, with its transposes in flight while other variables compute.
#include <algorithm>
#include <string>

#include <mpi.h>

#include "../kit/report.hpp"
#include "pipeline.hpp"
#include "report.hpp"
#include "slab.hpp"
#include "verify.hpp"

namespace fft3d {
namespace {

int smallest_message(const Slab& slab) {
  int smallest = 0;
  for (int peer = 0; peer < slab.ranks; ++peer) {
    if (peer == slab.rank) continue;
    const int least = std::min(slab.physical_counts[peer], slab.fourier_counts[peer]);
    smallest = smallest == 0 ? least : std::min(smallest, least);
  }
  return smallest;
}

// Errors over the whole run and the time of its middle part.
Outcome measure(const Options& options, const Slab& slab, MPI_Comm communicator, std::string& problem) {
  Pipeline pipeline(slab, options.variables, communicator);
  Verifier verifier(slab, options.variables, communicator);
  const TimeStep nothing(0, slab.nx, slab.ny, slab.nz);
  const TimeStep time_step(options.work, slab.nx, slab.ny, slab.nz);

  // Transforms alone first: closed form, round trip, energy. It warms up buffers and connections too.
  Errors errors = verifier.run(pipeline, nothing, 0);

  const double points = double(slab.nx) * slab.ny * slab.nz;
  double energy = 0;
  Profile profile;
  MPI_Barrier(communicator);
  const double start = MPI_Wtime();
  for (int iteration = 0; iteration < options.repeats; ++iteration) {
    pipeline.iterate(time_step, iteration, profile);
    const double local = pipeline.local_kinetic_sum() / points;
    profile.charge(Row::Other, [&] { MPI_Allreduce(&local, &energy, 1, MPI_DOUBLE, MPI_SUM, communicator); });
  }
  profile.charge(Row::Other, [&] { MPI_Barrier(communicator); });
  const double application = MPI_Wtime() - start;

  const std::uint64_t checksum = pipeline.checksum();
  if (slab.rank == 0) {
    kit::NumbersFile file(options.field);
    for (int v = 0; v < options.variables; ++v) file.write(pipeline.field(v), slab.points());
    problem = file.close();
  }
  for (int iteration = 0; iteration < options.repeats; ++iteration) verifier.skip(time_step, iteration);
  // A field or coefficient that went wrong in any timed iteration is still wrong in this one.
  errors.include(verifier.run(pipeline, nothing, options.repeats));
  const std::pair<const char*, double> seconds[] = {{"Application", application},
                                                    {"All communications", profile.all()},
                                                    {"MPI_Ialltoallv", profile.seconds(Row::Ialltoallv)},
                                                    {"MPI_Waitany", profile.seconds(Row::Waitany)},
                                                    {"Other", profile.seconds(Row::Other)}};
  Outcome outcome{
      {}, errors, energy, checksum, smallest_message(slab) * sizeof(Complex), kit::maximum(profile.longest())};
  for (const auto& [name, own] : seconds) outcome.times.emplace_back(name, kit::over_ranks(own));
  return outcome;
}

int run(const Options& options) {
  const Slab slab(options.nx, options.ny, options.nz, kit::ranks(), kit::rank());
  std::string problem;
  const Outcome outcome = measure(options, slab, MPI_COMM_WORLD, problem);
  const std::string unwritten = options.speaks() ? report(options, outcome) : "";
  return options.end(outcome.errors.good(), problem.empty() ? unwritten : problem);
}

}  // namespace
}  // namespace fft3d

int main(int argc, char** argv) { return kit::run_ranks(argc, argv, fft3d::run); }
