// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include <mpi.h>

#include "../kit/ranks.hpp"
#include "../kit/report.hpp"

namespace amr {
namespace {

double largest(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }
double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Largest error of depths that is taken for the solution: a shock is some cells wide.
double allowed(const Options& options) {
  const double cells = double(options.across) * (options.cells << (options.levels - 1));
  return 2 / cells;
}

}  // namespace

double Outcome::imbalance() const {
  double slowest = 0, all = 0;
  for (const auto& stretch : loads) slowest += largest(stretch), all += sum(stretch);
  return all > 0 ? slowest * kit::ranks() / all : 1;
}

double Outcome::overall_imbalance() const {
  std::vector<double> ranks_seconds(std::size_t(kit::ranks()), 0.0);
  for (const auto& stretch : loads)
    for (std::size_t r = 0; r < stretch.size(); ++r) ranks_seconds[r] += stretch[r];
  const double all = sum(ranks_seconds);
  return all > 0 ? largest(ranks_seconds) * kit::ranks() / all : 1;
}

double Outcome::lost() const { return std::fabs(after.volume - before.volume) / before.volume; }

bool Outcome::good(const Options& options) const {
  return lost() <= 1e-12 && (!after.error || *after.error <= allowed(options));
}

Outcome gather(const Simulation& simulation, const Water& before, const Options& options) {
  Outcome o{};
  o.before = before;
  o.after = measure(simulation, options.scene);
  o.time = simulation.time();
  o.seconds = simulation.seconds();
  for (std::size_t i = 0; i < kPhases.size(); ++i)
    o.phases.push_back(kit::mean(simulation.profile().seconds(Phase(i))));
  const std::vector<double>& mine = simulation.loads();
  std::vector<double> all(mine.size() * std::size_t(kit::ranks()));
  MPI_Allgather(mine.data(), int(mine.size()), MPI_DOUBLE, all.data(), int(mine.size()), MPI_DOUBLE, MPI_COMM_WORLD);
  for (std::size_t stretch = 0; stretch < mine.size(); ++stretch) {
    o.loads.emplace_back();
    for (std::size_t r = 0; r < std::size_t(kit::ranks()); ++r)
      o.loads.back().push_back(all[r * mine.size() + stretch]);
  }
  o.levels.resize(std::size_t(options.levels));
  for (const int level : simulation.grid().levels()) ++o.levels[std::size_t(level)];
  o.cell_steps = kit::sum(double(simulation.cell_steps()));
  o.changed = kit::sum(double(simulation.changed()));
  return o;
}

std::string report(const Options& options, const Outcome& o) {
  std::printf("amr: %s, %d x %d patches of %d x %d cells, %d levels, %d steps, %d ranks, patches by %s\n",
              kCases[int(options.scene)], options.across, options.down, options.cells, options.cells, options.levels,
              options.steps, kit::ranks(), kWho[int(options.who)]);
  std::printf("%-12s %10s\n", "phase", "seconds");
  for (std::size_t i = 0; i < kPhases.size(); ++i) std::printf("%-12s %10.4f\n", kPhases[i], o.phases[i]);
  std::printf("%-12s %10.4f\n", "all", o.seconds);
  std::printf("cells advanced %.0f; patches changed %.0f; patches of each level:", o.cell_steps, o.changed);
  for (const int count : o.levels) std::printf(" %d", count);
  std::printf("\nimbalance %.2f from look to look, %.2f over the run (largest / mean load of the ranks)\n",
              o.imbalance(), o.overall_imbalance());
  std::printf("bits %s\n", kit::hex(o.after.bits).c_str());
  std::printf("verified: %s (water lost %.1e", o.good(options) ? "yes" : "no", o.lost());
  if (o.after.error)
    std::printf(", error of the depth %.2e of %.2e that are allowed", *o.after.error, allowed(options));
  std::printf(")\n");
  std::fflush(stdout);
  kit::Json json;
  json["case"] = kCases[int(options.scene)];
  json["patches"] = {options.across, options.down};
  json["cells"] = options.cells;
  json["levels"] = options.levels;
  json["steps"] = options.steps;
  json["every"] = options.every;
  json["work"] = options.work;
  json["patches_by"] = kWho[int(options.who)];
  json["ranks"] = kit::ranks();
  json["seconds"] = o.seconds;
  for (std::size_t i = 0; i < kPhases.size(); ++i) json["phases_s"][kPhases[i]] = o.phases[i];
  json["loads_s"] = o.loads;
  json["imbalance"] = o.imbalance();
  json["overall_imbalance"] = o.overall_imbalance();
  json["patches_of_level"] = o.levels;
  json["cell_steps"] = o.cell_steps;
  json["changed_patches"] = o.changed;
  json["time"] = o.time;
  json["volume"] = o.after.volume;
  json["lost"] = o.lost();
  json["error"] = o.after.error ? kit::Json(*o.after.error) : kit::Json();
  json["bits"] = kit::hex(o.after.bits);
  json["verified"] = o.good(options);
  return kit::write_json(options.json, json);
}

}  // namespace amr
