// SPDX-License-Identifier: BSD-3-Clause
// Aliases: memory of a client that lies in its mapped region, too, and where; and how its memory was reached. One thread
// sets them, any thread looks them up.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace offpath::memory {

struct Alias {
  uint64_t address = 0;  // in the client
  uint64_t bytes = 0;
  uint64_t offset = 0;  // in the region, whose length the bytes do not leave
};

class Aliases {
 public:
  // By address, without overlaps. They replace those that were there.
  void set(std::vector<Alias> aliases);
  // The first bytes of some: so many of them lie together in the region, from `offset` on, or so many do not lie there.
  struct Found {
    std::optional<uint64_t> offset;
    uint64_t bytes;
  };
  Found find(uint64_t address, uint64_t bytes) const;

  void count_in_place(uint64_t bytes) { in_place_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void count_copied(uint64_t bytes) { copied_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  uint64_t in_place_bytes() const { return in_place_bytes_.load(std::memory_order_relaxed); }
  uint64_t copied_bytes() const { return copied_bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::vector<Alias> aliases_;
  std::atomic<uint64_t> in_place_bytes_{0};
  std::atomic<uint64_t> copied_bytes_{0};
};

}  // namespace offpath::memory
