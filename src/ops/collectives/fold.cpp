// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/fold.hpp"

namespace offpath::ops {

using graph::Graph;

void Buffer::protect(Graph& graph, uint32_t step) const {
  for (const uint32_t reader : readers) {
    if (reader != step) graph.order(reader, step);
  }
  for (const uint32_t index : exports) graph.order_after_taken(index, step);
}

void Buffer::refill(Graph& graph, uint32_t step) {
  protect(graph, step);
  readers.clear();
  exports.clear();
}

void give(Graph& graph, const Value& value, uint32_t peer, uint32_t tag, uint64_t bytes) {
  const uint32_t index = graph.offer(peer, tag, value.place, bytes, value.ready);
  if (value.buffer != nullptr) value.buffer->exports.push_back(index);
}

Value pull_into(Graph& graph, Buffer& buffer, uint32_t peer, uint32_t tag, uint64_t bytes) {
  const uint32_t step = graph.pull(peer, tag, buffer.place, bytes);
  buffer.refill(graph, step);
  return {buffer.place, step, &buffer};
}

Value combine(Graph& graph, const Value& left, const Value& right, const Value& target, uint64_t bytes) {
  const uint32_t step = graph.reduce(left.place, right.place, target.place, bytes);
  graph.order(left.ready, step);
  graph.order(right.ready, step);
  if (target.buffer != nullptr) target.buffer->refill(graph, step);
  for (Buffer* operand : {left.buffer, right.buffer}) {
    if (operand != nullptr && operand != target.buffer) operand->readers.push_back(step);
  }
  return {target.place, step, target.buffer};
}

Slots::Slots(const Expansion& expansion, uint32_t per_segment, uint64_t slot_bytes)
    : graph_(expansion.graph), slot_bytes_(slot_bytes) {
  const uint64_t fitting = expansion.tuning.scratch_bytes / std::max<uint64_t>(1, per_segment * slot_bytes);
  limit_ = per_segment * std::clamp<uint64_t>(fitting, 2, std::max(2U, expansion.tuning.window));
}

Buffer& Slots::next() {
  if (slots_.size() < limit_) {
    slots_.push_back({graph::scratch_place(graph_.reserve_scratch(slot_bytes_)), true, {}, {}});
    return slots_.back();
  }
  Buffer& slot = slots_[next_];
  next_ = (next_ + 1) % limit_;
  return slot;
}

Value fold(const Expansion& expansion, std::span<const Contribution> contributions, const Value& own, Slots& slots,
           const graph::Place* target, uint64_t bytes) {
  Graph& graph = expansion.graph;
  const auto take = [&](const Contribution& from) {
    return from.rank == expansion.topology.rank ? own : pull_into(graph, slots.next(), from.rank, from.tag, bytes);
  };
  Value sum = take(contributions.front());
  for (size_t i = 1; i < contributions.size(); ++i) {
    const Value next = take(contributions[i]);
    const bool last = i + 1 == contributions.size();
    const bool reuse_next = next.buffer != nullptr && next.buffer->scratch;
    sum = combine(graph, sum, next, last && target != nullptr ? Value{*target} : reuse_next ? next : sum, bytes);
  }
  return sum;
}

}  // namespace offpath::ops
