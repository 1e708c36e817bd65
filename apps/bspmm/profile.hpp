// SPDX-License-Identifier: BSD-3-Clause
// Where a rank's time went, in the rows of the table that is printed.
#pragma once

#include "../report/phase_times.hpp"

namespace bspmm {

// get, update: the calls and, in the blocking variant, their completion. wait: completion in the nonblocking variant.
// counter: until the next unit of work was known.
enum class Row { counter, get, compute, update, wait };
constexpr int kRows = 5;
constexpr const char* kRowNames[kRows] = {"counter", "get", "compute", "update", "wait"};
using Profile = report::PhaseTimes<Row, kRows>;

}  // namespace bspmm
