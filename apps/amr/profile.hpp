// SPDX-License-Identifier: BSD-3-Clause
// Where a rank's time goes.
#pragma once

#include "../report/phase_times.hpp"

namespace amr {

enum class Phase { ghosts, refine, step, advance, fluxes };
constexpr std::array<const char*, 5> kPhases = {"ghosts", "refine", "step", "advance", "fluxes"};
using Profile = report::PhaseTimes<Phase, kPhases.size()>;

}  // namespace amr
