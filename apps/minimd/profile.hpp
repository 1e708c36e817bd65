// SPDX-License-Identifier: BSD-3-Clause
// Where a rank's time goes, in the terms of the model.
#pragma once

#include <array>

#include <mpi.h>

namespace minimd {

enum class Phase { integrate, guard, halo, force, reverse, migrate, sort, borders, build, post, ship, wait, thermo };
constexpr std::array<const char*, 13> kPhases = {"integrate", "guard", "halo", "force", "reverse", "migrate", "sort",
                                                 "borders",   "build", "post", "ship",  "wait",    "thermo"};

class Profile {
 public:
  template <class Call>
  void charge(Phase phase, Call call) {
    const double start = MPI_Wtime();
    call();
    seconds_[std::size_t(phase)] += MPI_Wtime() - start;
  }
  double seconds(Phase phase) const { return seconds_[std::size_t(phase)]; }
  void clear() { seconds_ = {}; }

 private:
  std::array<double, kPhases.size()> seconds_{};
};

}  // namespace minimd
