// SPDX-License-Identifier: BSD-3-Clause
// What the ranks tell each other at MPI_Init. Plain bytes between equal processes of one job.
#pragma once

#include "job.hpp"

namespace offpath::mpi {

inline constexpr size_t kMaxPolicyText = 16384;

struct Job::Opening {
  uint8_t token[OFFPATH_TOKEN_BYTES];
  char policy[kMaxPolicyText];
  char problem[252];  // with the settings; then all stays native
  uint32_t blocking;  // blocking forms to offload: bit 1 << policy::Collective
  uint8_t share_cores;
  uint8_t cores_given;  // OFFPATH_SERVICE_CORES is set
};

struct Job::NodeRecord {
  uint64_t node_key;
  uint8_t has_targets;
  char host[64];
  std::array<uint64_t, kMaxCores / 64> mask;
  std::array<uint64_t, kMaxCores / 64> allowed;
};

struct Job::Attachment {
  int32_t ok;
  std::array<std::byte, OFFPATH_ADDRESS_MAX_BYTES> address;
  char problem[252];
};

}  // namespace offpath::mpi
