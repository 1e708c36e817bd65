// SPDX-License-Identifier: BSD-3-Clause
// What the ranks tell each other at MPI_Init. Plain bytes between equal processes of one job.
#pragma once

#include "job.hpp"

namespace offpath::mpi {

inline constexpr size_t kMaxPolicyText = 16384;

struct Job::Opening {
  attach::Terms terms;
  char policy[kMaxPolicyText];
  uint32_t blocking;  // blocking forms to offload: bit 1 << policy::Collective
};

}  // namespace offpath::mpi
