// SPDX-License-Identifier: BSD-3-Clause
// Where a rank's time goes.
#pragma once

#include <array>
#include <cstddef>

#include <mpi.h>

namespace amr {

enum class Phase { ghosts, refine, step, advance, fluxes };
constexpr std::array<const char*, 5> kPhases = {"ghosts", "refine", "step", "advance", "fluxes"};

class Profile {
 public:
  template <class Call>
  void charge(Phase phase, Call call) {
    const double start = MPI_Wtime();
    call();
    seconds_[std::size_t(phase)] += MPI_Wtime() - start;
  }
  double seconds(Phase phase) const { return seconds_[std::size_t(phase)]; }

 private:
  std::array<double, kPhases.size()> seconds_{};
};

}  // namespace amr
