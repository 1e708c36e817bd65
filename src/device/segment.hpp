// SPDX-License-Identifier: BSD-3-Clause
// The shared segment of a channel: submission ring and slots, then the staging area (the executor's), then the heap
// (the host's). Both sides map it all. Commands and answers in slots are encoded as on a stream.
//
// A slot's word: free (the host's) -> posted (the executor's) -> done (the host's); `watched` is posted with the host
// asleep on the word; lost: the host found the executor dead.
#pragma once

#include "device/command.hpp"

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace offpath::device {

inline constexpr uint32_t kSlots = 256;
inline constexpr uint32_t kReplySlots =
    32;  // of these: kept for replies, as regions that wait for one may have all others
inline constexpr uint64_t kStagingOffset = 1 << 20;
inline constexpr uint64_t kStagingBytes = 255 << 20;
inline constexpr uint64_t kHeapOffset = kStagingOffset + kStagingBytes;

enum class SlotState : uint32_t { free = 0, posted = 1, watched = 2, done = 3, lost = 4 };

struct Slot {
  alignas(64) std::atomic<SlotState> state;
  uint8_t header[kFrameHeaderBytes];
  uint8_t command[Command::kBytes];
  uint8_t answer[Answer::kBytes];
};

struct SegmentHeader {
  alignas(64) std::atomic<uint32_t> tail;          // futex: commands posted so far; written by the host
  std::atomic<uint32_t> posters_core;              // hint: where the host last posted, see is_own_core
  alignas(64) std::atomic<uint32_t> head;          // commands taken so far
  std::atomic<uint32_t> takers_core;               // hint: where the executor last took one
  std::atomic<uint32_t> sleepers;                  // executor's threads asleep on tail
  std::atomic<uint32_t> lookers;                   // executor's threads that look at tail without sleeping
  alignas(64) std::atomic<uint32_t> ring[kSlots];  // slots, by number of command modulo kSlots
  Slot slots[kSlots];
};
static_assert(sizeof(SegmentHeader) <= kStagingOffset);
static_assert(std::atomic<SlotState>::is_always_lock_free);

// Cores are kept plus 1; 0: not known. Who shares a core with the other side must not look for what that one does: it
// cannot do it meanwhile.
inline bool is_own_core(const std::atomic<uint32_t>& core) { return core == static_cast<uint32_t>(sched_getcpu() + 1); }
inline void note_own_core(std::atomic<uint32_t>& core) {
  if (!is_own_core(core)) core = static_cast<uint32_t>(sched_getcpu() + 1);
}

}  // namespace offpath::device
