// SPDX-License-Identifier: BSD-3-Clause
// The time steps, by any of the schedules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "atoms.hpp"
#include "balance.hpp"
#include "cells.hpp"
#include "domain.hpp"
#include "guard.hpp"
#include "off_side.hpp"
#include "options.hpp"
#include "profile.hpp"
#include "structure.hpp"
#include "thermo.hpp"

namespace minimd {

struct Counts {
  int rebuilds = 0;    // as planned, every k steps
  int relaxed = 0;     // of them: with forces by the old lists
  int guard_hits = 0;  // rebuilds, planned or not, because the guard had to
  int shared = 0;      // ordinary steps of which the other side had a share
};

class Simulation {
 public:
  // `problem`: empty, or one line for the user; then nothing can be run.
  Simulation(const Domain& domain, const Options& options, std::string& problem);

  void run();

  const std::vector<Thermo>& thermo() const { return thermo_; }
  const Atoms& atoms() const { return atoms_; }
  const Profile& profile() const { return profile_; }
  const Counts& counts() const { return counts_; }
  double seconds() const { return seconds_; }  // of the steps after the warm-up
  OffTimes off_times() const { return off_ ? off_->times() : OffTimes{}; }
  std::int64_t total() const { return total_; }
  std::size_t list_bytes() const { return structure().bytes(); }
  double share() const { return balance_.theirs(); }
  bool complete() const { return complete_; }  // no atom was lost

 private:
  void step(int number);
  void first_half();
  void second_half();
  void new_lists();
  void host_forces(bool with_sums);
  void shared_forces(bool with_sums);
  void relaxed_step(bool with_sums);
  void take_thermo(int number);
  void begin_timing();
  Structure& structure() { return structures_[current_]; }
  const Structure& structure() const { return structures_[current_]; }
  int own_share() const;

  const Domain domain_;
  const Options& options_;
  const Cells cells_;
  const std::int64_t total_;
  Atoms atoms_;
  Structure structures_[2];  // of the last rebuild and, while the other side still needs it, of the one before
  int current_ = 0;
  DisplacementGuard guard_;
  Balance balance_;
  std::unique_ptr<OffSide> off_;
  Sums sums_;
  std::vector<double> buffer_;
  std::vector<Thermo> thermo_;
  Profile profile_;
  Counts counts_;
  double begin_ = 0, seconds_ = 0;
  bool complete_ = true;
};

}  // namespace minimd
