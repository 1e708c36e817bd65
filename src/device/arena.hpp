// SPDX-License-Identifier: BSD-3-Clause
// Arena: which pieces of a device's heap are in use. Only the host allocates, so its books are private memory. Best fit
// with immediate merging of neighbours: a block that is freed and wanted again is found again, with its pages.
// Not thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace offpath::device {

struct Span {
  uint64_t address;
  uint64_t bytes;
};

class Arena {
 public:
  static constexpr uint64_t kAlignment = 64;

  Arena(uint64_t address, uint64_t bytes);
  // Empty when there is no room. A block of no bytes has an address of its own, too.
  std::optional<uint64_t> allocate(uint64_t bytes);
  // False: no block begins there.
  bool release(uint64_t address);
  // The longest free piece.
  uint64_t largest_free() const;
  uint64_t used() const { return used_; }
  // Free pieces whose pages should go back to the system; empty while what was freed is little beside the heap.
  std::vector<Span> take_excess();

 private:
  void add(uint64_t address, uint64_t bytes);
  void remove(std::map<uint64_t, uint64_t>::iterator span);

  uint64_t end_;
  uint64_t keep_;                                    // bytes of freed blocks whose pages stay
  std::map<uint64_t, uint64_t> free_;                // address -> bytes
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // (bytes, address)
  std::unordered_map<uint64_t, uint64_t> blocks_;
  uint64_t used_ = 0;
  uint64_t touched_ = 0;  // most that was in use since pages were given back
};

}  // namespace offpath::device
