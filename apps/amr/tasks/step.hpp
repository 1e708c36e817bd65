// SPDX-License-Identifier: BSD-3-Clause
// What a task of a patch is told besides its memory: cells and ghosts, then the next ones, then its result.
#pragma once

namespace amr {

struct StepArgument {
  int n;         // see Shape
  int work;      // how often it is computed
  double ratio;  // see advance()
};

constexpr const char* kStepSignature = "amr_step(in double state[], out double next[], out double result[]) 1";
enum StepRange { kState, kNext, kResult, kStepRanges };

}  // namespace amr
