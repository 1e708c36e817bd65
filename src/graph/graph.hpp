// SPDX-License-Identifier: BSD-3-Clause
// Graph: what one operation of one rank is to the engine. Pure data, made by an expansion (ops/), run by an engine
// (engine/) and priced by the planner (model/).
//
//   copy    bytes from `source` to `target`, both of this member: its memory, or files
//   pull    up to `bytes` bytes of what member `peer` exports to this one under `tag`, into `target`. With 0 bytes it
//           moves nothing and is done when the peer's export is handed out: a notification.
//   reduce  target = source ∘ operand, element by element, with the graph's reduction. The target may be one of them.
//   multicast  what nodes of the team have goes to all others at once; the members that take part have such a step each
//   compute a kernel on arrays that the service sees in place: shared memory of the client, or scratch
//   export  what others may pull from here; not a step, nobody runs it, but the operation waits until it was taken
//
// A step starts when all steps ordered before it are done and all exports it waits for were taken; an export is handed
// out when the step it waits for is done. Everything a member pulls must be exported to it by the peer's graph of the
// same operation, under the same tag and in at most as many bytes; a pull that finds no export gets an empty block, and
// an export that nobody will pull counts as taken when that member is known to have made all its pulls (endings.cpp).
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/reduce.hpp"
#include "memory/port.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace offpath::graph {

using Layout = memory::Layout;

inline constexpr uint32_t kClient = UINT32_MAX;       // Place::layout: contiguous memory of the client
inline constexpr uint32_t kScratch = UINT32_MAX - 1;  // Place::layout: scratch memory of the operation

// Where bytes of an operation lie: byte `offset` of the block that begins at `base`. kClient: base is a client address.
// kScratch: base is an offset into the scratch that the engine provides. Else the block lies at client address `base`
// as graph.layouts[layout] says. With a `file` the same in graph.files[file - 1], where addresses are offsets (or the
// member's memory, of a graph that works on other memory).
struct Place {
  uint64_t base = 0;
  uint64_t offset = 0;
  uint32_t layout = kClient;
  uint32_t file = 0;

  Place plus(uint64_t bytes) const { return {base, offset + bytes, layout, file}; }
  bool operator==(const Place&) const = default;
};

inline Place client_place(uint64_t address) { return {address, 0, kClient}; }
inline Place place_of(const memory::Block& block) {
  return {block.address, 0, block.layout == 0 ? kClient : block.layout - 1};
}
inline Place scratch_place(uint64_t offset) { return {offset, 0, kScratch}; }

enum class StepKind : uint8_t {
  copy,
  pull,
  reduce,
  compute,
  multicast,
  // The engine's own:
  fetch,  // chunks of a multicast that were lost
  ending  // whether a member will make more pulls
};

struct Compute {
  struct Array {
    Place place;  // contiguous
    uint64_t bytes = 0;
  };
  std::unique_ptr<kernels::Kernel> kernel;
  std::vector<Array> arrays;  // what the kernel works on, in its order
};

// One multicast operation (docs/design/0022-multicast.md). Equal on all its nodes, but for places and `own`.
struct Multicast {
  struct Piece {
    Place place;
    uint64_t bytes = 0;
  };
  std::vector<uint32_t> members;          // by node: who takes part for it; ascending
  uint32_t own = 0;                       // this node
  std::vector<std::vector<Piece>> parts;  // by node: what it sends; here it lies, or shall go
};
inline constexpr uint32_t kNoStep = UINT32_MAX;
inline constexpr uint32_t kEndingTag = UINT32_MAX;         // of the engine's own pulls: no export has it
inline constexpr uint32_t kFetchTags = uint32_t{1} << 31;  // from here on: of fetches, each its own

struct Step {
  StepKind kind = StepKind::copy;
  uint32_t peer = 0;
  uint32_t tag = 0;
  uint32_t waits = 0;  // steps and exports that must be done first
  Place source{};      // copy, reduce
  Place operand{};     // reduce
  Place target{};
  uint64_t bytes = 0;
  uint64_t room = 0;  // pull: what the place takes of this block and of all that follow; 0: of this one only
  std::shared_ptr<const Compute> compute{};
  std::shared_ptr<const Multicast> multicast{};
  std::vector<uint32_t> next{};  // steps that wait for this one
};

struct Export {
  uint32_t peer = 0;
  uint32_t tag = 0;
  Place place;
  uint64_t bytes = 0;
  uint32_t after = kNoStep;
  uint64_t rest = 0;           // this block and all that follow; what has no room for it gets nothing. 0: only this one
  std::vector<uint32_t> next;  // steps that wait until it was taken: they reuse its memory
};

// When an operation ends whose steps are done and whose exports were taken.
enum class Ends : uint8_t {
  alone,     // then
  together,  // when the steps of all members of the team are done; all post it
  by_pairs   // when those of all members that its exports are for are
};

class Graph {
 public:
  uint32_t copy(Place source, Place target, uint64_t bytes) {
    return add({.kind = StepKind::copy, .source = source, .target = target, .bytes = bytes});
  }
  uint32_t pull(uint32_t peer, uint32_t tag, Place target, uint64_t bytes, uint64_t room = 0) {
    return add({.kind = StepKind::pull, .peer = peer, .tag = tag, .target = target, .bytes = bytes, .room = room});
  }
  uint32_t reduce(Place source, Place operand, Place target, uint64_t bytes) {
    return add({.kind = StepKind::reduce, .source = source, .operand = operand, .target = target, .bytes = bytes});
  }
  uint32_t compute(Compute work) {
    return add({.kind = StepKind::compute, .compute = std::make_shared<const Compute>(std::move(work))});
  }
  uint32_t multicast(Multicast plan) {
    uint64_t bytes = 0;  // that come
    for (uint32_t node = 0; node < plan.parts.size(); ++node) {
      for (const auto& piece : plan.parts[node]) bytes += node == plan.own ? 0 : piece.bytes;
    }
    return add(
        {.kind = StepKind::multicast, .bytes = bytes, .multicast = std::make_shared<const Multicast>(std::move(plan))});
  }
  // Returns the export's index, valid until seal().
  uint32_t offer(uint32_t peer, uint32_t tag, Place place, uint64_t bytes, uint32_t after = kNoStep,
                 uint64_t rest = 0) {
    exports.push_back(
        {.peer = peer, .tag = tag, .place = place, .bytes = bytes, .after = after, .rest = rest, .next = {}});
    return static_cast<uint32_t>(exports.size() - 1);
  }
  // `second` starts after `first`; kNoStep as first: nothing to wait for.
  void order(uint32_t first, uint32_t second) {
    if (first == kNoStep) return;
    steps[first].next.push_back(second);
    ++steps[second].waits;
  }
  // `step` starts after the export was taken.
  void order_after_taken(uint32_t export_index, uint32_t step) {
    exports[export_index].next.push_back(step);
    ++steps[step].waits;
  }
  // All that is there so far begins after `step`, exports included.
  void begin_with(uint32_t step) {
    for (uint32_t i = 0; i < steps.size(); ++i) {
      if (i != step && steps[i].waits == 0) order(step, i);
    }
    for (Export& block : exports) {
      if (block.after == kNoStep) block.after = step;
    }
  }
  // `step` begins when all others are done.
  void end_with(uint32_t step) {
    for (uint32_t i = 0; i < steps.size(); ++i) {
      if (i != step) order(i, step);
    }
  }
  // Reserves scratch; returns its offset, 64-byte aligned.
  uint64_t reserve_scratch(uint64_t bytes) {
    const uint64_t offset = scratch_bytes;
    scratch_bytes += (bytes + 63) / 64 * 64;
    return offset;
  }
  // Sorts the exports so that they can be found; the engine calls it.
  void seal() {
    std::sort(exports.begin(), exports.end(),
              [](const Export& a, const Export& b) { return std::tie(a.peer, a.tag) < std::tie(b.peer, b.tag); });
    sealed_ = exports.size();
  }
  // How many exports there were then. The engine adds others behind them, for fetches.
  size_t sealed() const { return sealed_; }

  std::vector<Step> steps;
  std::vector<Export> exports;
  std::vector<Layout> layouts;
  kernels::Reduction reduction;  // without an operator: what is moved are such elements, where that is known
  uint64_t scratch_bytes = 0;
  std::shared_ptr<memory::Port> scratch;             // where kScratch is; null: the engine provides it
  std::shared_ptr<memory::Port> memory;              // where all else is; null: the member's
  std::vector<std::shared_ptr<memory::Port>> files;  // that places name
  // What the operation ends with when a pull brings fewer bytes than it should, or more; what came is handed on all the
  // same. OFFPATH_OK: blocks may be shorter.
  offpath_status_t shortfall = OFFPATH_OK;
  bool interpreted = false;  // what it moves is no mere data: code acts upon it, so it is authenticated in every mode
  Ends ends = Ends::alone;   // the same at all members
  bool in_order = false;     // its steps begin when those of its member and team that are so and were
                             // posted before have ended; its exports wait for steps

  // Index of the export to `peer` under `tag`, or kNoStep. After seal().
  uint32_t find_export(uint32_t peer, uint32_t tag) const {
    const auto end = exports.begin() + static_cast<std::ptrdiff_t>(sealed_);
    const auto it = std::lower_bound(exports.begin(), end, std::pair(peer, tag),
                                     [](const Export& e, const auto& key) { return std::pair(e.peer, e.tag) < key; });
    if (it != end && it->peer == peer && it->tag == tag) return static_cast<uint32_t>(it - exports.begin());
    for (size_t i = sealed_; i < exports.size(); ++i) {
      if (exports[i].peer == peer && exports[i].tag == tag) return static_cast<uint32_t>(i);
    }
    return kNoStep;
  }

 private:
  uint32_t add(Step step) {
    steps.push_back(std::move(step));
    return static_cast<uint32_t>(steps.size() - 1);
  }

  size_t sealed_ = 0;
};

}  // namespace offpath::graph
