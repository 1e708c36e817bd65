// SPDX-License-Identifier: BSD-3-Clause
// Memory with known contents that goes all to all, for tests of where it lies.
#pragma once

#include "job.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace offpath::testing {

inline constexpr size_t kPage = 4096;

inline uint8_t* map_memory(size_t bytes, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int file = -1) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  REQUIRE(memory != MAP_FAILED);
  return static_cast<uint8_t*>(memory);
}

inline uint8_t value_at(uint32_t seed, size_t i) {
  return static_cast<uint8_t>(seed * 131 + i * 7 + (i >> 12) * 13 + 1);
}
inline void fill(uint8_t* to, size_t bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes; ++i) to[i] = value_at(seed, i);
}
inline bool holds(const uint8_t* at, size_t bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes; ++i) {
    if (at[i] != value_at(seed, i)) return false;
  }
  return true;
}

// All to all among the team: what `from` gets of rank r is value_at(step * 16 + r).
inline void exchange(Process& p, offpath_team_t* team, uint8_t* send, uint8_t* recv, size_t bytes, uint32_t step) {
  for (uint32_t peer = 0; peer < p.size; ++peer) fill(send + peer * bytes, bytes, step * 16 + p.rank);
  p.complete([&](auto op) { return offpath_alltoall(team, send, recv, bytes, op); });
  for (uint32_t peer = 0; peer < p.size; ++peer) REQUIRE(holds(recv + peer * bytes, bytes, step * 16 + peer));
}

}  // namespace offpath::testing
