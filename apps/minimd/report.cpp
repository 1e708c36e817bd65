// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <cmath>
#include <cstdio>

#include "../kit/ranks.hpp"
#include "../kit/report.hpp"

namespace minimd {

Outcome gather(const Simulation& simulation) {
  Outcome o{
      simulation.seconds(), {}, simulation.off_times(), double(simulation.list_bytes()), simulation.share(), true, 0};
  for (std::size_t i = 0; i < kPhases.size(); ++i)
    o.phases.push_back(kit::mean(simulation.profile().seconds(Phase(i))));
  for (double* value : {&o.off.in, &o.off.force, &o.off.replay, &o.off.out, &o.off.share, &o.off.ship, &o.off.bytes,
                        &o.pairs_bytes, &o.share})
    *value = kit::mean(*value);
  o.complete = kit::minimum(std::int64_t(simulation.complete())) != 0;
  for (const Thermo& each : simulation.thermo()) {
    const double away = std::fabs(each.total - simulation.thermo().front().total);
    if (!(away <= o.drift)) o.drift = away;  // also where it is no number
  }
  return o;
}

std::string report(const Options& options, const Simulation& simulation, const Outcome& o) {
  std::printf("minimd: %lld atoms, %d ranks, %d steps, lists every %d, skin %g, schedule %s\n",
              static_cast<long long>(simulation.total()), kit::ranks(), options.steps, options.every, options.skin,
              kSchedules[int(options.schedule)]);
  std::printf("%8s %14s %14s %14s %16s\n", "step", "T", "U", "P", "E");
  for (const Thermo& t : simulation.thermo())
    std::printf("%8d %14.7g %14.7g %14.7g %16.9g\n", t.step, t.temperature, t.potential, t.pressure, t.total);
  std::printf("%-12s %10s\n", "phase", "seconds");
  for (std::size_t i = 0; i < kPhases.size(); ++i) std::printf("%-12s %10.4f\n", kPhases[i], o.phases[i]);
  std::printf("%-12s %10.4f\n", "all", o.seconds);
  const Counts& c = simulation.counts();
  std::printf("rebuilds %d, of them %d with old lists; guard hits %d; shared steps %d\n", c.rebuilds, c.relaxed,
              c.guard_hits, c.shared);
  std::printf("verified: %s\n", o.complete ? "yes" : "no (atoms were lost, or the two sides disagree on who has them)");
  std::fflush(stdout);
  kit::Json json;
  json["atoms"] = simulation.total();
  json["ranks"] = kit::ranks();
  json["steps"] = options.steps;
  json["timed_steps"] = options.steps - (options.warm_up <= options.steps ? options.warm_up : 0);
  json["every"] = options.every;
  json["skin"] = options.skin;
  json["schedule"] = kSchedules[int(options.schedule)];
  json["other_side"] = off_side_kind();
  json["guarded"] = options.guarded();
  json["share"] = o.share;
  json["dpu_threads"] = options.threads;
  json["dpu_repeats"] = options.repeats;
  json["seconds"] = o.seconds;
  for (std::size_t i = 0; i < kPhases.size(); ++i) json["phases_s"][kPhases[i]] = o.phases[i];
  const OffTimes& off = o.off;
  json["other_side_s"] = {{"in", off.in},   {"force", off.force}, {"replay", off.replay},
                          {"out", off.out}, {"share", off.share}, {"ship", off.ship}};
  json["other_side_count"] = {{"all", off.alls}, {"share", off.shares}, {"ship", off.ships}};
  json["shipped_bytes"] = off.bytes;
  json["list_bytes"] = o.pairs_bytes;
  json["rebuilds"] = c.rebuilds;
  json["relaxed"] = c.relaxed;
  json["guard_hits"] = c.guard_hits;
  json["shared_steps"] = c.shared;
  json["drift"] = o.drift;
  json["verified"] = o.complete;
  for (const Thermo& t : simulation.thermo())
    json["thermo"].push_back({{"step", t.step},
                              {"temperature", t.temperature},
                              {"potential", t.potential},
                              {"pressure", t.pressure},
                              {"total", t.total}});
  return kit::write_json(options.json, json);
}

}  // namespace minimd
