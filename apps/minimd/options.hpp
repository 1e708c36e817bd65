// SPDX-License-Identifier: BSD-3-Clause
// Command line of minimd.
#pragma once

#include <string>

#include "../kit/options.hpp"

namespace minimd {

enum class Schedule { host, relaxed, offpath, hybrid };
enum class Guard { automatic, on, off };
inline constexpr const char *kSchedules[] = {"host", "relaxed", "offpath", "hybrid"},
                            *kGuards[] = {"auto", "on", "off"};

struct Options : kit::Options {
  Options()
      : kit::Options("minimd",
                     "Molecular dynamics of Lennard-Jones atoms (fcc lattice, density 0.8442, temperature 1.44, cutoff "
                     "2.5, time step\n0.005): cell lists, half neighbour lists, halo exchange, migration.") {}
  int cells = number(cells, "--cells", 20, 1, 600, "cells of the lattice in each direction, four atoms in each");
  int steps = number(steps, "--steps", 100, 0, kit::kMany, "time steps");
  int every = number(every, "--every", 20, 1, kit::kMany, "steps from one rebuild of the lists to the next");
  double skin = real(skin, "--skin", 0.3, 0, 10, "how much further than the cutoff the lists reach");
  int thermo = number(thermo, "--thermo", 100, 1, kit::kMany,
                      "steps from one line of temperature, energy, pressure to the next");
  int warm_up =
      number(warm_up, "--warm-up", 0, 0, kit::kMany, "steps before those that are timed, of those of --steps");
  Schedule schedule = word(
      schedule, "--schedule", Schedule::host, kSchedules,
      "host: lists, then forces; relaxed: on a rebuild step forces by the old lists; offpath: those forces on the DPU "
      "while the host rebuilds; hybrid: the DPU takes a share of the other steps' forces, too");
  Guard guard = word(guard, "--guard", Guard::automatic, kGuards,
                     "rebuild before atoms have moved by more than the skin allows; auto: but for the host's schedule");
  int share = number(share, "--share", 0, 0, 99,
                     "percent of the other steps' pairs that are the DPU's (hybrid); 0: so many that both end at once");
  int threads = number(threads, "--dpu-threads", 1, 1, 1024, "threads of a rank's forces on the DPU");
  int repeats = number(repeats, "--dpu-repeats", 1, 1, 1000, "emulates a slower DPU: it computes its forces so often");
  std::string json = text(json, "--json", "rank 0 writes results and times to that file");
  std::string field = text(field, "--field",
                           "rank 0 writes what it knows of its atoms: positions, those of neighbours too, there, as "
                           "doubles");

  static constexpr double kCutoff = 2.5, kDensity = 0.8442, kTemperature = 1.44, kTimeStep = 0.005;
  double reach() const { return kCutoff + skin; }
  bool guarded() const { return guard == Guard::on || (guard == Guard::automatic && schedule != Schedule::host); }
};

}  // namespace minimd
