// SPDX-License-Identifier: BSD-3-Clause
// Combining what several members contribute to a segment. Contributions are pulled into scratch slots that are used
// again and again; the member's own is read where it lies.
#pragma once

#include "ops/collectives/segments.hpp"

#include <deque>
#include <span>

namespace offpath::ops {

// Memory whose readers are remembered, so that it is not overwritten too early.
struct Buffer {
  graph::Place place;
  bool scratch = false;           // may hold results
  std::vector<uint32_t> readers;  // steps
  std::vector<uint32_t> exports;

  // `step` overwrites it, so it waits for all that read it.
  void protect(graph::Graph& graph, uint32_t step) const;
  // The same, and what follows reads what `step` writes.
  void refill(graph::Graph& graph, uint32_t step);
};

// What lies at a place once a step is done.
struct Value {
  graph::Place place;
  uint32_t ready = graph::kNoStep;
  Buffer* buffer = nullptr;  // null: nobody will overwrite it

  static Value of(Buffer& buffer) { return {buffer.place, graph::kNoStep, &buffer}; }
};

// Exports the value.
void give(graph::Graph& graph, const Value& value, uint32_t peer, uint32_t tag, uint64_t bytes);
Value pull_into(graph::Graph& graph, Buffer& buffer, uint32_t peer, uint32_t tag, uint64_t bytes);
// target = left ∘ right. The target may be one of them.
Value combine(graph::Graph& graph, const Value& left, const Value& right, const Value& target, uint64_t bytes);

// Scratch slots handed out in turn. A slot comes again after `window` segments' worth of slots, fewer where the
// tuning's scratch would not do.
class Slots {
 public:
  Slots(const Expansion& expansion, uint32_t per_segment, uint64_t slot_bytes);
  Buffer& next();

 private:
  graph::Graph& graph_;
  uint64_t slot_bytes_;
  size_t limit_;
  size_t next_ = 0;
  std::deque<Buffer> slots_;
};

struct Contribution {
  uint32_t rank = 0;
  uint32_t tag = 0;
};

// Combines the contributions in their order; `own` is this member's, if it is among them. The last step writes to
// `target`; without one the result lies in a slot, or is `own` if there is nothing else.
Value fold(const Expansion& expansion, std::span<const Contribution> contributions, const Value& own, Slots& slots,
           const graph::Place* target, uint64_t bytes);

}  // namespace offpath::ops
