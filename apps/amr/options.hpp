// SPDX-License-Identifier: BSD-3-Clause
// Command line of amr.
#pragma once

#include <string>

#include "../kit/options.hpp"

namespace amr {

enum class Case { dam, wave, rest };
enum class Who { own, tasks };
inline constexpr const char *kCases[] = {"dam", "wave", "rest"}, *kWho[] = {"own", "tasks"};

struct Options : kit::Options {
  Options()
      : kit::Options("amr",
                     "Shallow water in a basin with walls: finite volumes in patches, which are refined where the "
                     "surface is steep.") {}
  int across = number(across, "--across", 16, 1, 4096, "patches along x; a rank has those of a strip");
  int down = number(down, "--down", 4, 1, 4096, "patches along y");
  int cells = number(cells, "--cells", 8, 4, 512, "cells of a patch's side that is not refined; an even number");
  int levels = number(levels, "--levels", 3, 1, 6, "1: nothing is refined; one more: cells of half the width");
  int steps = number(steps, "--steps", 200, 0, kit::kMany, "time steps");
  int every = number(every, "--every", 4, 1, kit::kMany, "steps from one look at where to refine to the next");
  double tolerance =
      real(tolerance, "--tolerance", 0.05, 0, 1, "a patch is refined where depths in it differ by more than that");
  Case scene = word(scene, "--case", Case::dam, kCases,
                    "dam: breaks in the middle, whose solution is known; wave: one crest, which runs to and fro; rest: "
                    "still water");
  Who who = word(who, "--patches", Who::own, kWho,
                 "own: each rank computes its patches; tasks: each patch's step is a task (the program amr_tasks)");
  int work = number(work, "--work", 1, 1, 1000, "computes each step of a patch so often, as richer physics would");
  std::string json = text(json, "--json", "rank 0 writes results and times to that file");

  static constexpr double kDeep = 2, kShallow = 1, kCourant = 0.4;

 private:
  std::string check() override {
    return cells % 2 == 0 ? "" : "--cells must be even (two cells become one). Give for example 8";
  }
};

}  // namespace amr
