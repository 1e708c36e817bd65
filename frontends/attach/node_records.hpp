// SPDX-License-Identifier: BSD-3-Clause
// NodeRecords: what the processes of a job say about their nodes, by process. Most of a node say the same: so each tells all others
// a few bytes, which tell nodes apart, and of those that would say the same of a node the first one says it in full.
//
// Threads: any, as it does not change.
#pragma once

#include "attach/exchange.hpp"
#include "attach/node.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::attach {

class NodeRecords {
 public:
  NodeRecords() = default;
  // As if they had told each other.
  NodeRecords(const std::vector<NodeRecord>& all);
  // Of all of `job`; collective. False: the exchange failed.
  static bool gather(const Exchange& job, const NodeRecord& own, NodeRecords* out);

  size_t size() const { return briefs_.size(); }
  uint64_t key_of(size_t process) const { return briefs_[process].key; }
  // As that process has said it, or would have.
  NodeRecord operator[](size_t process) const;
  // Who said something in full.
  size_t said() const { return said_.size(); }

 private:
  // What each tells all others.
  struct Brief {
    uint64_t key;    // NodeRecord's
    uint32_t rest;   // a hash of what is the same on most of a node; then a number among said_
    uint32_t bound;  // the cores, as a word; of others a hash, then a number among said_
  };
  static Brief brief_of(const NodeRecord& record);
  // By process: whether it says its record in full. Hashes become numbers.
  std::vector<uint8_t> find_speakers();

  std::vector<Brief> briefs_;     // by process
  std::vector<NodeRecord> said_;  // by those that speak
};

}  // namespace offpath::attach
