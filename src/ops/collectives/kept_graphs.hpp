// SPDX-License-Identifier: BSD-3-Clause
// KeptGraphs: graphs of collectives that a member posts again and again, as persistent ones are. The second time the graph is
// kept; from then on what is asked for is compared with what was, and not read, checked and expanded. Few and short ones only.
// For one member of one team, on one thread; blocks nobody. Pure.
#pragma once

#include "ops/collectives/collective.hpp"

#include <array>
#include <span>

namespace offpath::ops {

class KeptGraphs {
 public:
  static constexpr size_t kMost = 8;
  static constexpr size_t kMostParts =
      1024;  // of a graph: steps and exports; of what it is made from: blocks, counts and ranges

  // The graph of what the record says; its owner may change it meanwhile. Always the same topology. OFFPATH_ERR_ARGUMENT and
  // why (collective::decode, collective::check).
  base::Result<graph::Graph> expand(std::span<const uint8_t> record, collective::OwnBlocks own,
                                    const Topology& topology);
  size_t count() const { return kept_.size(); }

 private:
  struct Kept {
    std::vector<uint8_t> record;
    collective::OwnBlocks own;
    graph::Graph graph;
  };

  std::vector<Kept> kept_;
  std::array<uint64_t, kMost> seen_{};  // what came last, by digest; more would only push each other out
  size_t next_seen_ = 0;
  size_t next_kept_ = 0;
};

}  // namespace offpath::ops
