// SPDX-License-Identifier: BSD-3-Clause
// Where atoms are and how fast at the beginning: an fcc lattice, and velocities that depend on the place in it alone.
#pragma once

#include <cstdint>

#include "atoms.hpp"
#include "domain.hpp"

namespace minimd {

inline std::int64_t atoms_of_lattice(int cells) { return 4 * std::int64_t(cells) * cells * cells; }

// The own atoms; velocities not yet scaled, and with a momentum.
Atoms make_lattice(const Domain& domain, int cells);

// No momentum, and that temperature. On all ranks.
void set_temperature(Atoms& atoms, std::int64_t total, double temperature);

}  // namespace minimd
