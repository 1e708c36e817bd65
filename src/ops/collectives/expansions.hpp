// SPDX-License-Identifier: BSD-3-Clause
// The algorithms (policy/algorithms.def); each has a file of its own. They add this member's steps and exports to the expansion's graph.
// Precondition: check() passed. Reductions are only called for teams of several members.
#pragma once

#include "ops/collectives/segments.hpp"

namespace offpath::ops {

#define OFFPATH_ALGORITHM_ROW(kind, name, from, function) void expand_##function(const Expansion& expansion);
#include "policy/algorithms.def"

}  // namespace offpath::ops
