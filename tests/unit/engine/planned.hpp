// SPDX-License-Identifier: BSD-3-Clause
// One collective of ops/ as engines run it: its arguments and its memory, where it really lies.
#pragma once

#include "../ops/algorithms.hpp"
#include "../ops/team.hpp"
#include "cluster.hpp"

#include <string>

namespace offpath::testing {

struct Planned {
  Planned(const Case& c, uint64_t seed) : text(c.text()), tuning(c.tuning), team(c, seed) {
    for (uint32_t member = 0; member < team.machines.size(); ++member) {
      const uint64_t shift = address_of(team.machines[member].memory.data()) - kClientBase;
      for (ops::Block& block : team.collectives[member].send) block.address += shift;
      for (ops::Block& block : team.collectives[member].recv) block.address += shift;
    }
  }
  graph::Graph graph(uint32_t member, bool in_order) const {
    graph::Graph made = ops::expand(team.collectives[member], team.machines[member].topology, tuning);
    made.in_order = in_order;
    return made;
  }
  bool is_right(uint32_t member) const { return team.machines[member].memory == team.expected(member); }
  std::string text;
  ops::Tuning tuning;
  Team team;
};

}  // namespace offpath::testing
