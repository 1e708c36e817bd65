// SPDX-License-Identifier: BSD-3-Clause
// Graph: what one operation of one rank is to the engine. Pure data, made by an expansion (ops/), run by an Engine and
// priced by the planner. Addresses are the client's.
//
//   copy    bytes from `source` to `target`, both in the client's own memory
//   pull    up to `bytes` bytes of what member `peer` exports to this one under `tag`, into `target`
//   export  what others may pull from here; not a step, nobody runs it, but the operation waits until it was taken
//
// A step starts when all steps ordered before it are done; an export is handed out when the step it waits for is done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace offpath::engine {

enum class StepKind : uint8_t { copy, pull };
inline constexpr uint32_t kNoStep = UINT32_MAX;

struct Step {
  StepKind kind = StepKind::copy;
  uint32_t peer = 0;
  uint32_t tag = 0;
  uint32_t waits = 0;  // steps that must be done first
  uint64_t source = 0;
  uint64_t target = 0;
  uint64_t bytes = 0;
  std::vector<uint32_t> next;  // steps that wait for this one
};

struct Export {
  uint32_t peer = 0;
  uint32_t tag = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t after = kNoStep;
};

class Graph {
 public:
  uint32_t copy(uint64_t source, uint64_t target, uint64_t bytes) {
    return add({StepKind::copy, 0, 0, 0, source, target, bytes, {}});
  }
  uint32_t pull(uint32_t peer, uint32_t tag, uint64_t target, uint64_t bytes) {
    return add({StepKind::pull, peer, tag, 0, 0, target, bytes, {}});
  }
  void offer(uint32_t peer, uint32_t tag, uint64_t address, uint64_t bytes, uint32_t after = kNoStep) {
    exports.push_back({peer, tag, address, bytes, after});
    ordered_exports |= after != kNoStep;
  }
  void order(uint32_t first, uint32_t second) {
    steps[first].next.push_back(second);
    ++steps[second].waits;
  }
  // Sorts the exports so that they can be found; the engine calls it.
  void seal() {
    std::sort(exports.begin(), exports.end(),
              [](const Export& a, const Export& b) { return std::tie(a.peer, a.tag) < std::tie(b.peer, b.tag); });
  }

  std::vector<Step> steps;
  std::vector<Export> exports;
  bool ordered_exports = false;  // does any export wait for a step?

  // Index of the export to `peer` under `tag`, or kNoStep. After seal().
  uint32_t find_export(uint32_t peer, uint32_t tag) const {
    const auto it = std::lower_bound(exports.begin(), exports.end(), std::pair(peer, tag),
                                     [](const Export& e, const auto& key) { return std::pair(e.peer, e.tag) < key; });
    const bool found = it != exports.end() && it->peer == peer && it->tag == tag;
    return found ? static_cast<uint32_t>(it - exports.begin()) : kNoStep;
  }

 private:
  uint32_t add(Step step) {
    steps.push_back(std::move(step));
    return static_cast<uint32_t>(steps.size() - 1);
  }
};

}  // namespace offpath::engine
