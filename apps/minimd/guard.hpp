// SPDX-License-Identifier: BSD-3-Clause
// How far atoms have moved since their lists were built. As long as twice the farthest is within the skin, no pair within
// the cutoff is missing from a list.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <mpi.h>

namespace minimd {

class DisplacementGuard {
 public:
  explicit DisplacementGuard(double skin) : skin_(skin) {}

  void built(const std::vector<double>& x, int local) {
    from_.assign(x.begin(), x.begin() + 3 * std::ptrdiff_t(local));
  }

  // The same on all ranks.
  bool exceeded(const std::vector<double>& x) {
    double farthest = 0;
    for (std::size_t i = 0; i < from_.size(); i += 3) {
      const double dx = x[i] - from_[i], dy = x[i + 1] - from_[i + 1], dz = x[i + 2] - from_[i + 2];
      farthest = std::max(farthest, dx * dx + dy * dy + dz * dz);
    }
    MPI_Allreduce(MPI_IN_PLACE, &farthest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return 2 * std::sqrt(farthest) > skin_;
  }

 private:
  const double skin_;
  std::vector<double> from_;
};

}  // namespace minimd
