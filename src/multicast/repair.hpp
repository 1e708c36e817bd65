// SPDX-License-Identifier: BSD-3-Clause
// The fetch ring: how a node gets over a reliable way what multicast did not bring, and gives it on. Node r fetches from
// its predecessor r-1 and serves its successor r+1, part by part, the nearest owner's first: then nobody waits for ever, and where
// all is missing this is the ring allgather (docs/design/0022-multicast.md has the proof). Pure.
#pragma once

#include "multicast/arrivals.hpp"

namespace offpath::multicast {

// Fetch asks the predecessor: need(part), and once that is ready, its gaps, as pulls. In the end fin. A part that comes by
// itself meanwhile is not waited for: the next question takes the place of the one before.
class Fetch {
 public:
  // At most so many chunks are one pull, and so many pulls are under way.
  struct Limits {
    uint32_t run = 4096;
    uint32_t pulls = 4;
  };
  struct Wish {
    enum class Kind : uint8_t { none, need, pull, fin } kind = Kind::none;
    uint32_t part = 0;
    Chunks run{};
  };

  Fetch(uint32_t own, const Limits& limits) : own_(own), limits_(limits) {}

  // What to do next; to be asked again until there is nothing. Nothing before begin(), unless all is there.
  Wish next(const Arrivals& arrivals);
  void begin() { begun_ = true; }
  bool begun() const { return begun_; }
  // What the predecessor answers. False: it was not asked that.
  bool ready(const Arrivals& arrivals, uint32_t part);
  // A pull has ended, and its run is noted.
  bool fetched();
  bool finished() const { return stage_ == Stage::finished; }

 private:
  enum class Stage : uint8_t { choosing, waiting, pulling, finished };

  uint32_t own_;
  Limits limits_;
  Stage stage_ = Stage::choosing;
  bool begun_ = false;
  uint32_t distance_ = 1;  // of the owners before, all is there
  uint32_t part_ = 0;
  uint32_t from_ = 0;  // chunks of the part before are there, or under way
  uint32_t under_way_ = 0;
};

// Serve answers the successor's last question.
class Serve {
 public:
  // False: it may not ask that now.
  bool need(const Arrivals& arrivals, uint32_t part);
  bool fin();
  // The part that is asked for and complete: to be answered by ready, once.
  std::optional<uint32_t> take_ready(const Arrivals& arrivals);
  // What a pull of the successor may be about: chunks of one part that it was told is ready.
  bool may_pull(const Arrivals& arrivals, uint32_t part, const Chunks& run) const;
  bool finished() const { return finished_; }

 private:
  std::optional<uint32_t> asked_;
  std::optional<uint32_t> granted_;
  bool finished_ = false;
};

}  // namespace offpath::multicast
