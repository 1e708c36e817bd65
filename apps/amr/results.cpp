// SPDX-License-Identifier: BSD-3-Clause
#include "results.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include <mpi.h>

#include "exact.hpp"

namespace amr {
namespace {

// Of one patch.
struct Sums {
  double volume = 0, error = 0;
  std::uint64_t bits = 14695981039346656037ULL;  // FNV-1a, by words
  void mix(std::uint64_t word) { bits = (bits ^ word) * 1099511628211ULL; }
};

Sums sum(const Patch& patch, const Grid& grid, const DamBreak* known, double time) {
  const Shape s = patch.shape;
  const double width = 1.0 / s.n;
  Sums sums;
  sums.mix(std::uint64_t(s.n));
  for (int j = 0; j < s.n; ++j)
    for (int i = 0; i < s.n; ++i) {
      const double h = patch.state[s.at(i, j)];
      sums.volume += h * width * width;
      const double away = grid.x(patch.number) + (i + 0.5) * width - 0.5 * grid.across();
      if (known != nullptr) sums.error += std::fabs(h - known->depth(away, time)) * width * width;
      for (int f = 0; f < 3; ++f) {
        std::uint64_t word;
        std::memcpy(&word, &patch.state[std::size_t(f) * s.field() + s.at(i, j)], sizeof word);
        sums.mix(word);
      }
    }
  return sums;
}

}  // namespace

// Sums of patches are added up in the order of the patches, so they do not depend on the number of ranks.
Water measure(const Simulation& simulation, Case scene) {
  const Grid& grid = simulation.grid();
  const DamBreak dam(Options::kDeep, Options::kShallow);
  const double half = 0.5 * grid.across(), time = simulation.time();
  const bool known = scene == Case::dam && dam.ahead(time) < half && dam.back(time) < half;
  const std::size_t patches = std::size_t(grid.patches());
  std::vector<double> volumes(patches), errors(patches);
  std::vector<std::uint64_t> bits(patches);
  for (const Patch& patch : simulation.patches()) {
    const Sums sums = sum(patch, grid, known ? &dam : nullptr, time);
    const std::size_t at = std::size_t(patch.number);
    volumes[at] = sums.volume, errors[at] = sums.error, bits[at] = sums.bits;
  }
  MPI_Allreduce(MPI_IN_PLACE, volumes.data(), int(patches), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, errors.data(), int(patches), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, bits.data(), int(patches), MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  Water water{0, {}, 0};
  double error = 0;
  Sums all;
  for (std::size_t i = 0; i < patches; ++i) {
    water.volume += volumes[i];
    error += errors[i];
    all.mix(bits[i]);
  }
  water.bits = all.bits;
  if (known) water.error = error / (double(grid.patches()) * (Options::kDeep - Options::kShallow));
  return water;
}

}  // namespace amr
