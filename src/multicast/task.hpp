// SPDX-License-Identifier: BSD-3-Clause
// Task: one node's part in one multicast operation, from the moment when all are armed. It is told what happened and says what
// is to be done; it knows no sockets, clocks or memory. Nothing it is told by others can make it do what is not its turn: it says
// false, and the teller is wrong. Pure. docs/design/0022-multicast.md
#pragma once

#include "multicast/chains.hpp"
#include "multicast/repair.hpp"

#include <deque>

namespace offpath::multicast {

struct Act {
  enum class Kind : uint8_t {
    send,   // multicast the own part, then sent()
    token,  // tell node `to` that it is its turn
    need,   // tell node `to` that part `part` is needed
    ready,  // tell node `to` that it may pull from part `part`
    pull,   // get chunks `run` of part `part` from node `to`, then fetched()
    fin     // tell node `to` that nothing more will be asked
  } kind = Kind::send;
  uint32_t to = 0;
  uint32_t part = 0;
  Chunks run{};
};

class Task {
 public:
  struct Config {
    uint32_t chains = 2;
    Fetch::Limits fetch{};
  };
  Task(Shape shape, uint32_t own, const Config& config);

  // What all nodes were told: to multicast, or that there is only the ring.
  void go(bool multicast);
  // A chunk is here: whether to put it where it belongs, and then note it.
  Arrival look(uint32_t chunk) const { return over_ ? Arrival::known : arrivals_.look(chunk); }
  void note(uint32_t chunk) { note(Chunks{chunk, 1}); }
  // Of one part.
  void note(const Chunks& run);
  void sent();
  // Nothing has come for as long as the caller waits.
  void quiet();

  // Said by others.
  bool token(uint32_t from);
  bool need(uint32_t from, uint32_t part);
  bool ready(uint32_t from, uint32_t part);
  bool fin(uint32_t from);
  bool may_pull(uint32_t from, uint32_t part, const Chunks& run) const;
  // A pull has ended well: its bytes are where they belong.
  bool fetched(const Chunks& run);

  std::optional<Act> next();
  // All that others have is here: what waits for it may begin.
  bool complete() const { return arrivals_.complete(); }
  // Something is missing, and may still come by itself.
  bool listens() const { return !complete() && !fetch_.begun(); }
  // And nobody needs this node any more, nor has it anything to say.
  bool done() const { return over_ && acts_.empty(); }
  const Arrivals& arrivals() const { return arrivals_; }
  uint64_t repaired() const { return repaired_; }  // chunks that were fetched
  uint32_t predecessor() const { return (own_ + nodes() - 1) % nodes(); }
  uint32_t successor() const { return (own_ + 1) % nodes(); }

 private:
  enum class Turn : uint8_t { before, sending, over };

  uint32_t nodes() const { return arrivals_.shape().nodes(); }
  void send();
  void settle();

  uint32_t own_;
  Arrivals arrivals_;
  Chains chains_;
  Fetch fetch_;
  Serve serve_;
  Turn turn_ = Turn::before;
  bool begun_ = false;
  bool over_ = false;
  std::vector<uint32_t> awaited_;  // of each chain, whose last chunk has not come
  uint64_t repaired_ = 0;
  std::deque<Act> acts_;
};

}  // namespace offpath::multicast
