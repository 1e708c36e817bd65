// SPDX-License-Identifier: BSD-3-Clause
// Temperature, energy and pressure, in reduced units.
#pragma once

#include <cstdint>

#include "atoms.hpp"
#include "force.hpp"

namespace minimd {

struct Thermo {
  int step;
  double temperature, potential, pressure;  // potential energy per atom
  double total;                             // kinetic and potential energy per atom
};

// Both on all ranks, with the same result there.
double measure_temperature(const Atoms& atoms, std::int64_t total);
Thermo measure(int step, const Atoms& atoms, const Sums& own, std::int64_t total, double volume);

}  // namespace minimd
