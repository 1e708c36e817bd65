// SPDX-License-Identifier: BSD-3-Clause
// Turns: how much of the long blocks that a worker has asked other nodes for may be under way at once, over all senders. Each
// sender's TCP finds out alone what the way takes, so many that begin together fill a short queue before the first of them hears of
// it, and wait for a retransmission timeout (docs/design/0057-congestion.md). Nothing is bounded before segments were lost while
// several were sending, and never a block that comes alone. Pure, lengths in bytes; owned by Imports, on the worker's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

namespace offpath::engine {

class Turns {
 public:
  struct Grant {
    uint64_t id;
    uint64_t upto;  // the block's beginning, so many bytes
  };

  explicit Turns(uint64_t chunk_bytes);

  // A block of at most `bytes` is asked for: how much of it may leave at first. That is little and not counted, as its sender may be
  // late: so who is late holds up nobody.
  uint64_t ask(uint64_t id, uint64_t bytes);
  // `bytes` more of a block, of `total`, are here.
  void arrive(uint64_t id, uint64_t bytes, uint64_t total);
  // It is complete, or given up.
  void end(uint64_t id);
  // Who may send more now, in turn: only senders that have begun. Until there is none.
  std::optional<Grant> next();

  // Of a block, so much may have left; UINT64_MAX: all.
  uint64_t granted(uint64_t id) const {
    const auto found = asked_.find(id);
    return found == asked_.end() ? UINT64_MAX : found->second.granted;
  }

  // After each look_bytes() that have come: from how many senders, and whether some of it came behind a gap.
  void look(size_t senders, bool lost);
  uint64_t look_bytes() const { return 16 * chunk_bytes_; }
  // UINT64_MAX: nothing is bounded.
  uint64_t window() const { return window_; }

 private:
  struct Asked {
    uint64_t total;
    uint64_t granted;
    uint64_t here = 0;
    bool begun = false;
  };

  const uint64_t chunk_bytes_;
  const uint64_t first_bytes_;
  uint64_t window_ = UINT64_MAX;
  bool narrowed_ = false;   // in the last look: what was asked for before still comes
  uint64_t alone_ = 0;      // the block that was asked for whole; 0: none
  uint64_t under_way_ = 0;  // of blocks that have begun
  std::unordered_map<uint64_t, Asked> asked_;
  std::deque<uint64_t> waiting_;  // have begun, and have more; or have ended
};

}  // namespace offpath::engine
