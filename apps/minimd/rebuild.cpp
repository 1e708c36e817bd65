// SPDX-License-Identifier: BSD-3-Clause
#include "migrate.hpp"
#include "structure.hpp"

namespace minimd {

void rebuild(Atoms& atoms, const Domain& domain, const Cells& cells, double reach, Structure& structure,
             Profile& profile) {
  std::vector<int> start;
  Moving moving{atoms.x, atoms.v, atoms.local};
  profile.charge(Phase::migrate, [&] { migrate(moving, domain); });
  profile.charge(Phase::sort, [&] { sort_by_cell(moving, cells, start); });
  atoms.local = moving.atoms;
  atoms.x.resize(3 * std::size_t(atoms.local));
  atoms.v.resize(3 * std::size_t(atoms.local));
  profile.charge(Phase::borders, [&] { find_borders(atoms, domain, reach, structure); });
  profile.charge(Phase::build, [&] { build_list(atoms, domain, cells, start, reach, structure); });
}

}  // namespace minimd
