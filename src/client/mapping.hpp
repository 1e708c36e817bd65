// SPDX-License-Identifier: BSD-3-Clause
// OFFPATH_MAPPED: which memory of the program lies in the memory that is shared with its service.
#pragma once

#include <cstdint>
#include <string>

namespace offpath::client {

// How long memory may be without being slower because it is shared: longer private memory has large pages where the
// system gives them to everybody, and random reads take 1.3 to 1.75 times as long without. From what stands in `enabled` and
// `shmem_enabled` of /sys/kernel/mm/transparent_hugepage. Pure.
uint64_t longest_without_loss(const std::string& enabled, const std::string& shmem_enabled);

struct Mapping {
  uint64_t lends_up_to = UINT64_MAX;  // what the program asks us for, if it is no longer
  uint32_t moves_from = 0;            // its own, from so many uses on; 0: never

  // off: neither; allocated, or nothing: the first, without loss; on: both; a number: the same from so many uses on. Another
  // word counts as nothing, and is a problem of the environment.
  static Mapping from_environment();
};

}  // namespace offpath::client
