// SPDX-License-Identifier: BSD-3-Clause
// The algorithms (offpath/words/algorithms.def); each has a file of its own. They add this member's steps and exports to the expansion's graph.
// Precondition: check() passed. Reductions are only called for teams of several members.
#pragma once

#include "ops/collectives/segments.hpp"

namespace offpath::ops {

#define OFFPATH_EXPANSION(kind, NAME, from, function) void expand_##function(const Expansion& expansion);
#include <offpath/words/algorithms.def>

}  // namespace offpath::ops
