// SPDX-License-Identifier: BSD-3-Clause
// Allreduce by recursive halving and doubling over the nodes: in each round pairs give each other the half that the other one goes
// on with, and what is combined in the end comes back the same way. Nobody moves more than about twice the vector, in 2 log2(nodes)
// messages. Source: Rabenseifner (ICCS 2004); Thakur, Rabenseifner, Gropp (IJHPCA 2005).
#include "ops/collectives/halving.hpp"
#include "ops/collectives/rounds.hpp"

namespace offpath::ops {
namespace {

constexpr uint32_t kSegments = 2;  // what is combined hides behind what moves
constexpr uint32_t kSlots = 3;     // of a segment: one that is filled, one that is read, one that is given

struct Range {
  uint64_t begin = 0, end = 0;
  uint64_t bytes() const { return end - begin; }
};

class Halving {
 public:
  Halving(const Expansion& expansion, const RoundsOfSegment& segment)
      : expansion_(expansion), segment_(segment), rounds_(segment.rounds.count()) {}

  uint32_t add(Value sum) {
    std::vector<Range> given;
    Range mine{0, segment_.bytes};
    for (uint32_t round = 0; round < rounds_; ++round) {
      const uint64_t middle = std::min(mine.begin + round_up((mine.bytes() + 1) / 2, kCutAlignment), mine.end);
      const Range low{mine.begin, middle}, high{middle, mine.end};
      const bool lower = node() < segment_.rounds.other(node(), round);
      const Range kept = lower ? low : high;
      given.push_back(lower ? high : low);
      const Value away = part(sum, given.back().begin - mine.begin);
      if (given.back().bytes() > 0) give(graph(), away, peer(round), tag(round), given.back().bytes());
      sum = part(sum, kept.begin - mine.begin);
      if (kept.bytes() > 0) {
        const Value theirs = pull_into(graph(), segment_.slots.next(), peer(round), tag(round), kept.bytes());
        const Value to = round + 1 == rounds_ ? Value{segment_.target.plus(kept.begin)} : theirs;
        sum = lower ? combine(graph(), sum, theirs, to, kept.bytes()) : combine(graph(), theirs, sum, to, kept.bytes());
      }
      mine = kept;
    }
    return gather(mine, given, sum.ready);
  }

 private:
  static Value part(const Value& of, uint64_t offset) { return {of.place.plus(offset), of.ready, of.buffer}; }
  graph::Graph& graph() const { return expansion_.graph; }
  uint32_t node() const { return expansion_.topology.node(); }
  uint32_t peer(uint32_t round) const {
    return expansion_.handler(segment_.rounds.other(node(), round), segment_.number);
  }
  uint32_t tag(uint32_t phase) const { return tag_of(segment_.number, kFirstRound + phase); }

  // The pair of a round gives each other what it has by then. What comes lies where that half was given away, which was taken
  // before anything of it could be combined.
  uint32_t gather(Range mine, const std::vector<Range>& given, uint32_t ready) {
    const graph::Place target = segment_.target;
    for (uint32_t round = rounds_; round-- > 0;) {
      const uint32_t back = tag(rounds_ + round);
      if (mine.bytes() > 0) graph().offer(peer(round), back, target.plus(mine.begin), mine.bytes(), ready);
      const Range& other = given[round];
      if (other.bytes() > 0) {
        const uint32_t pulled = graph().pull(peer(round), back, target.plus(other.begin), other.bytes());
        const uint32_t both = graph().copy({}, {}, 0);
        graph().order(ready, both);
        graph().order(pulled, both);
        ready = both;
      }
      mine = {std::min(mine.begin, other.begin), std::max(mine.end, other.end)};
    }
    return ready;
  }

  const Expansion& expansion_;
  const RoundsOfSegment& segment_;
  const uint32_t rounds_;
};

}  // namespace

void expand_allreduce_halving(const Expansion& expansion) {
  const uint64_t bytes = expansion.collective.send.front().bytes;
  const uint64_t step = std::max(expansion.segment_bytes(bytes), round_up(bytes / kSegments, kCutAlignment));
  allreduce_in_rounds(expansion, {bytes, step}, kSlots,
                      [&](const RoundsOfSegment& segment, Value sum) { return Halving(expansion, segment).add(sum); });
}

}  // namespace offpath::ops
