// SPDX-License-Identifier: BSD-3-Clause
// What the PEs tell each other when they start. Plain bytes between equal processes of one job.
#pragma once

#include "job.hpp"
#include "node.hpp"

namespace offpath::shmem {

inline constexpr size_t kHeap = 0, kData = 1, kSegments = 2;
inline constexpr const char* kNoHeap =
    "the symmetric heap has no room for the start-up (a few KiB per PE). Raise SHMEM_SYMMETRIC_HEAP_SIZE";

struct Job::Opening {
  uint8_t token[OFFPATH_TOKEN_BYTES];
  uint8_t team[OFFPATH_TEAM_ID_BYTES];
  char problem[256];   // with the settings; then all stays native
  uint32_t min_nodes;  // the fewest on which the policy offloads windows; 0: none
  uint8_t enabled;
  uint8_t share_cores;
  uint8_t cores_given;  // OFFPATH_SERVICE_CORES is set
};

struct Job::NodeRecord {
  uint64_t node_key;
  std::array<char, 64> host;
  mpi::CoreSet bound;
  mpi::CoreSet allowed;
};

struct Job::Attachment {
  std::array<std::byte, OFFPATH_ADDRESS_MAX_BYTES> address;
  std::array<Range, kSegments> ranges;
  offpath_error_t error;  // of attaching; status OFFPATH_OK if it did
};

}  // namespace offpath::shmem
