// SPDX-License-Identifier: BSD-3-Clause
// What the ranks tell each other at MPI_Init. Plain bytes between equal processes of one job.
#pragma once

#include "mpi/job/job.hpp"

namespace offpath::mpi {

using attach::kMaxPolicyText;

struct Job::Opening {
  attach::Terms terms;
  char memory[kMaxPolicyText];
  char policy[kMaxPolicyText];
  char comm_policy[kMaxPolicyText];
  uint8_t adapts;
  uint8_t adapt_percent;
  uint32_t blocking;  // blocking forms to offload: bit 1 << policy::Collective
};

}  // namespace offpath::mpi
