// SPDX-License-Identifier: BSD-3-Clause
#include "lattice.hpp"

#include <algorithm>
#include <cmath>

#include <mpi.h>

#include "thermo.hpp"

namespace minimd {
namespace {

// Park and Miller's minimal standard generator; numbers in (0, 1).
double random(std::int64_t& state) {
  constexpr std::int64_t kMultiplier = 16807, kModulus = 2147483647;
  state = state * kMultiplier % kModulus;
  return (1.0 / double(kModulus)) * double(state);
}

double random_velocity(std::int64_t& state) {
  for (int i = 0; i < 5; ++i) random(state);
  return random(state);
}

}  // namespace

Atoms make_lattice(const Domain& domain, int cells) {
  Atoms atoms;
  const int sites = 2 * cells;  // in each direction; every second one has an atom
  const double half = domain.length[0] / cells * 0.5;
  int first[3], last[3];
  for (int d = 0; d < 3; ++d) {
    first[d] = std::max(int(domain.lo[d] / half) - 1, 0);
    last[d] = std::min(int(domain.hi[d] / half) + 1, sites - 1);
  }
  const auto own = [&](int d, double x) { return x >= domain.lo[d] && x < domain.hi[d]; };
  for (int k = first[2]; k <= last[2]; ++k) {
    if (!own(2, half * k)) continue;
    for (int j = first[1]; j <= last[1]; ++j) {
      if (!own(1, half * j)) continue;
      for (int i = first[0]; i <= last[0]; ++i) {
        if ((i + j + k) % 2 || !own(0, half * i)) continue;
        std::int64_t state = (std::int64_t(k) * sites + j) * sites + i + 1;
        for (const int site : {i, j, k}) {
          atoms.x.push_back(half * site);
          atoms.v.push_back(random_velocity(state));
        }
        ++atoms.local;
      }
    }
  }
  return atoms;
}

void set_temperature(Atoms& atoms, std::int64_t total, double temperature) {
  double sum[3] = {0, 0, 0};
  for (int i = 0; i < 3 * atoms.local; ++i) sum[i % 3] += atoms.v[i];
  MPI_Allreduce(MPI_IN_PLACE, sum, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 3 * atoms.local; ++i) atoms.v[i] -= sum[i % 3] / double(total);
  const double factor = std::sqrt(temperature / measure_temperature(atoms, total));
  for (double& v : atoms.v) v *= factor;
}

}  // namespace minimd
