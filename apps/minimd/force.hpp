// SPDX-License-Identifier: BSD-3-Clause
// Lennard-Jones forces (epsilon = sigma = 1) over a half list: each pair once. Host and DPU run this.
#pragma once

#include <algorithm>

namespace minimd {

struct Sums {
  double energy = 0, virial = 0;
};

// The neighbours of atom i are neighbours[first[i]] to neighbours[first[i + 1]].
struct ListView {
  const int* first;
  const int* neighbours;
};

// What atoms begin to end - 1 and their neighbours do to each other is added to f.
template <bool with_sums>
inline Sums add_forces(const double* x, double* f, ListView list, int begin, int end, double cutoff) {
  const double cutoff_squared = cutoff * cutoff;
  Sums sums;
  for (int i = begin; i < end; ++i) {
    const double xi = x[3 * i], yi = x[3 * i + 1], zi = x[3 * i + 2];
    double fx = 0, fy = 0, fz = 0;
    const int last = list.first[i + 1];
    for (int k = list.first[i]; k < last; ++k) {
      const int j = list.neighbours[k];
      const double dx = xi - x[3 * j], dy = yi - x[3 * j + 1], dz = zi - x[3 * j + 2];
      const double squared = dx * dx + dy * dy + dz * dz;
      if (squared >= cutoff_squared) continue;
      const double inverse = 1.0 / squared;
      const double sixth = inverse * inverse * inverse;
      const double force = 48.0 * sixth * (sixth - 0.5) * inverse;
      fx += dx * force, fy += dy * force, fz += dz * force;
      f[3 * j] -= dx * force, f[3 * j + 1] -= dy * force, f[3 * j + 2] -= dz * force;
      if constexpr (with_sums) {
        sums.energy += 4.0 * sixth * (sixth - 1.0);
        sums.virial += squared * force;
      }
    }
    f[3 * i] += fx, f[3 * i + 1] += fy, f[3 * i + 2] += fz;
  }
  return sums;
}

inline Sums add_forces(const double* x, double* f, ListView list, int begin, int end, double cutoff, bool with_sums) {
  return with_sums ? add_forces<true>(x, f, list, begin, end, cutoff)
                   : add_forces<false>(x, f, list, begin, end, cutoff);
}

}  // namespace minimd
