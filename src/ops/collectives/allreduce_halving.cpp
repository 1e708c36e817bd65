// SPDX-License-Identifier: BSD-3-Clause
// Allreduce by recursive halving and doubling over the nodes: in each round pairs give each other the half that the other one goes
// on with, and what is combined in the end comes back the same way. Nobody moves more than about twice the vector, in 2 log2(nodes)
// messages. Source: Rabenseifner (ICCS 2004); Thakur, Rabenseifner, Gropp (IJHPCA 2005).
#include "ops/collectives/halving.hpp"
#include "ops/collectives/owners.hpp"
#include "ops/collectives/rounds.hpp"
#include "ops/collectives/spread.hpp"

namespace offpath::ops {
namespace {

constexpr uint32_t kSegments = 2;  // what is combined hides behind what moves
constexpr uint32_t kSlots = 3;     // of a segment: one that is filled, one that is read, one that is given

struct Range {
  uint64_t begin = 0, end = 0;
  uint64_t bytes() const { return end - begin; }
};

// What one node does for a segment that is combined at `target` in the end.
class Halving {
 public:
  Halving(const Expansion& expansion, const Rounds& rounds, Slots& slots, uint32_t segment, graph::Place target)
      : expansion_(expansion), rounds_(rounds), slots_(slots), segment_(segment), target_(target) {}

  // `sum`: of this node, and of the one that it takes part for. Returns the step after which all of it is there.
  uint32_t add(Value sum, uint64_t bytes) {
    std::vector<Range> given;
    Range mine{0, bytes};
    uint64_t at = 0;  // of sum
    for (uint32_t round = 0; round < rounds_.count(); ++round) {
      const uint64_t middle = std::min(mine.begin + round_up((mine.bytes() + 1) / 2, kCutAlignment), mine.end);
      const bool lower = rounds_.is_lower(node(), round);
      const Range kept = lower ? Range{mine.begin, middle} : Range{middle, mine.end};
      given.push_back(lower ? Range{middle, mine.end} : Range{mine.begin, middle});
      give_range(part(sum, given.back().begin - at), round, given.back());
      sum = part(sum, kept.begin - at);
      if (kept.bytes() > 0) {
        const Value theirs = pull_into(graph(), slots_.next(), peer(round), tag(round), kept.bytes());
        const Value to = round + 1 == rounds_.count() ? Value{target_.plus(kept.begin)} : theirs;
        sum = lower ? combine(graph(), sum, theirs, to, kept.bytes()) : combine(graph(), theirs, sum, to, kept.bytes());
      }
      mine = kept;
      at = kept.begin;
    }
    return gather(mine, given, sum.ready);
  }

 private:
  static Value part(const Value& of, uint64_t offset) { return {of.place.plus(offset), of.ready, of.buffer}; }
  graph::Graph& graph() const { return expansion_.graph; }
  uint32_t node() const { return expansion_.topology.node(); }
  uint32_t peer(uint32_t round) const { return expansion_.handler(rounds_.other(node(), round), segment_); }
  uint32_t tag(uint32_t round) const { return tag_of(segment_, kFirstRound + round); }
  void give_range(const Value& value, uint32_t round, const Range& range) {
    if (range.bytes() > 0) give(graph(), value, peer(round), tag(round), range.bytes());
  }

  // The pair of a round gives each other what it has by then. What comes lies where that half was given away, which was taken
  // before anything of it could be combined.
  uint32_t gather(Range mine, const std::vector<Range>& given, uint32_t ready) {
    for (uint32_t round = rounds_.count(); round-- > 0;) {
      const uint32_t back = tag_of(segment_, kFirstRound + rounds_.count() + round);
      if (mine.bytes() > 0) graph().offer(peer(round), back, target_.plus(mine.begin), mine.bytes(), ready);
      const Range& other = given[round];
      if (other.bytes() > 0) {
        const uint32_t pulled = graph().pull(peer(round), back, target_.plus(other.begin), other.bytes());
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
  const Rounds& rounds_;
  Slots& slots_;
  const uint32_t segment_;
  const graph::Place target_;
};

}  // namespace

void expand_allreduce_halving(const Expansion& expansion) {
  const auto& [collective, topology, tuning, graph] = expansion;
  const Block& send = collective.send.front();
  const uint32_t node = topology.node();
  const Rounds rounds(topology.nodes());
  const uint32_t partner = node ^ 1;
  const uint64_t step = std::max(expansion.segment_bytes(send.bytes), round_up(send.bytes / kSegments, kCutAlignment));
  const Segments segments{send.bytes, step};
  Slots slots(expansion, static_cast<uint32_t>(topology.neighbours().size()) + kSlots, std::min(step, send.bytes));
  Tree tree{rounds.rests(node) ? partner : node, {}};
  if (rounds.takes_partner(node)) tree.children.push_back(partner);
  Spread spread(expansion, tree);

  for (uint32_t i = 0; i < segments.count(); ++i) {
    const uint64_t bytes = segments.length(i);
    const graph::Place target = place_of(collective.recv.front()).plus(segments.offset(i));
    const auto handler = [&](uint32_t of_node) { return expansion.handler(of_node, i); };
    const Value own{place_of(send).plus(segments.offset(i))};
    uint32_t ready = graph::kNoStep;
    if (topology.rank != handler(node)) {
      give(graph, own, handler(node), tag_of(i, kToHandler), bytes);
    } else {
      std::vector<Contribution> contributions;
      if (rounds.takes_partner(node)) contributions.push_back({handler(partner), tag_of(i, kToOwner)});
      add_neighbours(expansion, tag_of(i, kToHandler), contributions);
      const bool all = rounds.count() == 0 && !rounds.rests(node);
      const Value sum = fold(expansion, contributions, own, slots, all ? &target : nullptr, bytes);
      if (rounds.rests(node)) {
        give(graph, sum, handler(partner), tag_of(i, kToOwner), bytes);
      } else {
        ready = Halving(expansion, rounds, slots, i, target).add(sum, bytes);
      }
    }
    spread.segment(handler(rounds.rests(node) ? partner : node), i, tag_of(i, kResult), target, bytes, ready);
  }
}

}  // namespace offpath::ops
