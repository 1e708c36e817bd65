// SPDX-License-Identifier: BSD-3-Clause
// Heap: which stretches of the shared memory are handed out; offsets from 0, whole pages, first fit. Stretches are
// vectors of a solver: few and large. Its book-keeping is private memory, so nobody else can damage it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace offpath::client {

class Heap {
 public:
  explicit Heap(uint64_t capacity) : capacity_(capacity) {
    if (capacity > 0) free_[0] = capacity;
  }
  uint64_t capacity() const { return capacity_; }
  // Nothing is handed out.
  bool empty() const { return used_.empty(); }
  // Nothing when there is no stretch of that length.
  std::optional<uint64_t> allocate(uint64_t bytes);
  // A stretch that is handed out becomes two, the second from `second` on (a page inside it).
  void split(uint64_t offset, uint64_t second);
  // The length of the stretch that began there; 0 if none did.
  uint64_t release(uint64_t offset);
  // Of the stretch that is handed out and begins there; 0: none does.
  uint64_t length_at(uint64_t offset) const {
    const auto found = used_.find(offset);
    return found == used_.end() ? 0 : found->second;
  }
  // Whether a stretch that is handed out begins there.
  bool begins_at(uint64_t offset) const { return used_.count(offset) != 0; }

 private:
  uint64_t capacity_;
  std::map<uint64_t, uint64_t> free_;  // offset and length; neighbours are put together
  std::map<uint64_t, uint64_t> used_;
};

}  // namespace offpath::client
