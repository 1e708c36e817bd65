// SPDX-License-Identifier: BSD-3-Clause
// Locks: who holds one member's part of a window, and who waits for it. Granted in the order of asking; several shared
// ones at a time.
#pragma once

#include "graph/request.hpp"

#include <deque>
#include <unordered_set>
#include <vector>

namespace offpath::ops::onesided {

class Locks {
 public:
  enum class Outcome { granted, waits, refused };
  // Refused: the member holds it or waits for it already.
  Outcome lock(uint32_t rank, bool exclusive, graph::RequestId request);
  // The member holds it already, whoever has granted it.
  void hold(uint32_t rank, bool exclusive);
  bool holds(uint32_t rank) const { return holders_.contains(rank); }
  // False: the member does not hold it.
  bool unlock(uint32_t rank);
  // The member is lost: it neither holds nor waits.
  void forget(uint32_t rank);
  // Those that wait and can be granted now; they hold it from here on.
  std::vector<graph::RequestId> grant();
  // Nobody waits any more; returns who did.
  std::vector<graph::RequestId> give_up();

 private:
  struct Waiting {
    uint32_t rank;
    bool exclusive;
    graph::RequestId request;
  };
  bool free_for(bool exclusive) const { return holders_.empty() || (!exclusive && !held_exclusively_); }

  std::unordered_set<uint32_t> holders_;
  bool held_exclusively_ = false;
  std::deque<Waiting> waiting_;
};

}  // namespace offpath::ops::onesided
