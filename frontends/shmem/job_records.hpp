// SPDX-License-Identifier: BSD-3-Clause
// What the PEs tell each other when they start. Plain bytes between equal processes of one job.
#pragma once

#include "shmem/job.hpp"

namespace offpath::shmem {

inline constexpr size_t kHeap = 0, kData = 1, kSegments = 2;

struct Job::Opening {
  attach::Terms terms;
  ActiveSets::Id team;
  char policy[attach::kMaxPolicyText];
  uint32_t blocking;  // collectives to offload: bit 1 << policy::Collective
  uint8_t enabled;
};

using Ranges = std::array<Range, kSegments>;  // of symmetric memory, as one PE has it

}  // namespace offpath::shmem
