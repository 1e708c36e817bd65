// SPDX-License-Identifier: BSD-3-Clause
// Scratch: memory of the service itself in which operations keep partial results. Addresses are offsets from 0 on;
// everything has a view. A pool keeps blocks that were given back, so that operations that repeat find their pages
// already there.
#pragma once

#include "memory/port.hpp"

#include <deque>
#include <mutex>

namespace offpath::memory {

// Threads: blocks may be let go by any thread; take() is called by the owner's.
class ScratchPool : public std::enable_shared_from_this<ScratchPool> {
 public:
  // Keeps at most `cached_bytes` in blocks that nobody uses.
  explicit ScratchPool(uint64_t cached_bytes);
  ~ScratchPool();

  // At least `bytes` bytes, page aligned, of any content; null when there is no memory. The block comes back when its
  // last reference goes; until then it keeps the pool alive.
  std::shared_ptr<Port> take(uint64_t bytes);
  uint64_t cached_bytes() const;

 private:
  class Block;
  void give_back(std::unique_ptr<Block> block);

  const uint64_t limit_;
  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<Block>> cached_;  // the longest unused first
  uint64_t cached_bytes_ = 0;
};

}  // namespace offpath::memory
