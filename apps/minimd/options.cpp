// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "arguments/arguments.hpp"

namespace minimd {
namespace {

const arguments::Arguments::Words<Schedule> kSchedules = {{"host", Schedule::host},
                                                          {"relaxed", Schedule::relaxed},
                                                          {"offpath", Schedule::offpath},
                                                          {"hybrid", Schedule::hybrid}};

}  // namespace

std::string parse_options(int argc, char** argv, Options& options) {
  constexpr int kMany = 1000000000;
  arguments::Arguments known("minimd",
                             "Molecular dynamics of Lennard-Jones atoms (fcc lattice, density 0.8442, temperature "
                             "1.44, cutoff 2.5, time step\n"
                             "0.005): cell lists, half neighbour lists, halo exchange, migration.");
  known.number("--cells", options.cells, 1, 600, "cells of the lattice in each direction, four atoms in each");
  known.number("--steps", options.steps, 0, kMany, "time steps");
  known.number("--every", options.every, 1, kMany, "steps from one rebuild of the lists to the next");
  known.real("--skin", options.skin, 0, 10, "how much further than the cutoff the lists reach");
  known.number("--thermo", options.thermo, 1, kMany,
               "steps from one line of temperature, energy, pressure to the next");
  known.number("--warm-up", options.warm_up, 0, kMany, "steps before those that are timed, of those of --steps");
  known.word("--schedule", options.schedule, kSchedules,
             "host: lists, then forces; relaxed: on a rebuild step forces by the old lists; offpath: those forces on "
             "the DPU while the host rebuilds; hybrid: the DPU takes a share of the other steps' forces, too");
  known.word("--guard", options.guard, {{"auto", Guard::automatic}, {"on", Guard::on}, {"off", Guard::off}},
             "rebuild before atoms have moved by more than the skin allows; auto: but for the host's schedule");
  known.number("--share", options.share, 0, 99,
               "percent of the other steps' pairs that are the DPU's (hybrid); 0: so many that both end at once");
  known.number("--dpu-threads", options.threads, 1, 1024, "threads of a rank's forces on the DPU");
  known.number("--dpu-repeats", options.repeats, 1, 1000, "emulates a slower DPU: it computes its forces so often");
  known.text("--json", options.json, "rank 0 writes results and times to that file");
  known.text("--field", options.field,
             "rank 0 writes what it knows of its atoms: positions, those of neighbours too, there, as doubles");
  const std::string problem = known.parse(argc, argv);
  options.help = known.help();
  return problem;
}

const char* name(Schedule schedule) {
  for (const auto& [word, value] : kSchedules)
    if (value == schedule) return word.c_str();
  return "";
}

}  // namespace minimd
