// SPDX-License-Identifier: BSD-3-Clause
// The time steps.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../kit/clocks.hpp"
#include "advancer.hpp"
#include "grid.hpp"
#include "neighbours.hpp"
#include "options.hpp"
#include "patches.hpp"

namespace amr {

// Where a rank's time goes.
enum class Phase { ghosts, refine, step, advance, fluxes };
constexpr std::array<const char*, 5> kPhases = {"ghosts", "refine", "step", "advance", "fluxes"};
using Profile = kit::PhaseTimes<Phase, kPhases.size()>;

class Simulation {
 public:
  // On all ranks. `problem`: empty, or one line for the user; then nothing can be run.
  Simulation(const Options& options, int rank, int ranks, std::string& problem);

  // Refined where it is needed, before anything moves.
  void begin();
  void run();

  const Grid& grid() const { return grid_; }
  const std::vector<Patch>& patches() const { return patches_->all(); }
  const Profile& profile() const { return profile_; }
  double time() const { return time_; }        // of the water
  double seconds() const { return seconds_; }  // of the steps
  // Of this rank's patches, on a core, between one look at where to refine and the next.
  const std::vector<double>& loads() const { return loads_; }
  std::int64_t cell_steps() const { return cell_steps_; }  // cells of this rank, summed up over the steps
  std::int64_t changed() const { return changed_; }        // patches of this rank that were given other cells

 private:
  // Of what waits for other ranks.
  template <class Call>
  void meet(Phase phase, Call call) {
    advancer_->waits(true);
    profile_.charge(phase, call);
    advancer_->waits(false);
  }
  void set_cells();
  void refine();
  void step();
  std::vector<int> busy();
  double longest_step();

  const Options& options_;
  const int rank_;
  Grid grid_;
  std::unique_ptr<Advancer> advancer_;
  std::unique_ptr<Patches> patches_;
  std::unique_ptr<Neighbours> neighbours_;
  Profile profile_;
  std::vector<double> loads_;
  double time_ = 0, seconds_ = 0;
  std::int64_t cell_steps_ = 0, changed_ = 0;
};

}  // namespace amr
