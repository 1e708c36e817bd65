// SPDX-License-Identifier: BSD-3-Clause
// Where the members of teams are served, as it lies in the segment: a table of the addresses, each once, and for each member the number
// of its. Teams whose tables are the same share one: most communicators of a job have the nodes of another one.
//
// Threads: with the session's mutex held, but compact(), which is pure.
#pragma once

#include "base/result.hpp"
#include "client/arena.hpp"

#include <offpath/offpath.h>

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::client {

struct CompactAddresses {
  uint32_t stride = 0;
  std::vector<uint8_t> table;       // a multiple of that
  std::vector<uint32_t> number_of;  // by member
  uint32_t nodes = 0;               // services that the members live on
  uint32_t count() const { return static_cast<uint32_t>(table.size() / stride); }
};

// Of that many members: only what they have, and no byte more of each than it needs. Without numbers member i has address i. Errors:
// addresses that are none, or of several jobs.
base::Result<CompactAddresses> compact(const offpath_directory_t& directory, uint32_t members);

class AddressTables {
 public:
  // Offset in the arena of a table like that; 0: there is no room. Each is to be released.
  uint64_t take(Arena& arena, uint8_t* segment, std::span<const uint8_t> table);
  void release(Arena& arena, uint64_t offset);

 private:
  struct Entry {
    uint64_t offset;
    uint64_t bytes;
    uint32_t users;
  };
  std::vector<Entry> entries_;
};

}  // namespace offpath::client
