// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "arguments/arguments.hpp"

namespace amr {
namespace {

const arguments::Arguments::Words<Case> kCases = {{"dam", Case::dam}, {"wave", Case::wave}, {"rest", Case::rest}};
const arguments::Arguments::Words<Who> kWho = {{"own", Who::own}, {"tasks", Who::tasks}};

template <class Words, class Value>
const char* word_of(const Words& words, Value value) {
  for (const auto& [word, each] : words)
    if (each == value) return word.c_str();
  return "";
}

}  // namespace

std::string parse_options(int argc, char** argv, Options& options) {
  constexpr int kMany = 1000000000;
  arguments::Arguments known("amr",
                             "Shallow water in a basin with walls: finite volumes in patches, which are refined where "
                             "the surface is steep.");
  known.number("--across", options.across, 1, 4096, "patches along x; a rank has those of a strip");
  known.number("--down", options.down, 1, 4096, "patches along y");
  known.number("--cells", options.cells, 4, 512, "cells of a patch's side that is not refined; an even number");
  known.number("--levels", options.levels, 1, 6, "1: nothing is refined; one more: cells of half the width");
  known.number("--steps", options.steps, 0, kMany, "time steps");
  known.number("--every", options.every, 1, kMany, "steps from one look at where to refine to the next");
  known.real("--tolerance", options.tolerance, 0, 1, "a patch is refined where depths in it differ by more than that");
  known.word(
      "--case", options.scene, kCases,
      "dam: breaks in the middle, whose solution is known; wave: one crest, which runs to and fro; rest: still water");
  known.word("--patches", options.who, kWho,
             "own: each rank computes its patches; tasks: each patch's step is a task (the program amr_tasks)");
  known.number("--work", options.work, 1, 1000, "computes each step of a patch so often, as richer physics would");
  known.text("--json", options.json, "rank 0 writes results and times to that file");
  std::string problem = known.parse(argc, argv);
  options.help = known.help();
  if (problem.empty() && options.cells % 2 != 0)
    problem = "--cells must be even (two cells become one). Give for example 8";
  return problem;
}

const char* name(Case scene) { return word_of(kCases, scene); }
const char* name(Who who) { return word_of(kWho, who); }

}  // namespace amr
