// SPDX-License-Identifier: BSD-3-Clause
// Where a rank's time goes, in the terms of the model.
#pragma once

#include "../kit/clocks.hpp"

namespace minimd {

enum class Phase { integrate, guard, halo, force, reverse, migrate, sort, borders, build, post, ship, wait, thermo };
constexpr std::array<const char*, 13> kPhases = {"integrate", "guard", "halo", "force", "reverse", "migrate", "sort",
                                                 "borders",   "build", "post", "ship",  "wait",    "thermo"};
using Profile = kit::PhaseTimes<Phase, kPhases.size()>;

}  // namespace minimd
