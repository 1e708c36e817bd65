// SPDX-License-Identifier: BSD-3-Clause
#include "engine/compression.hpp"

#include "base/clock.hpp"
#include "engine/engine.hpp"

#include <bit>

namespace offpath::engine {

namespace {
// A sample takes some 50 us; these take 13 ms at 10 Gbit/s.
constexpr uint64_t kBytesPerSample = 16 << 20;

codecs::Chooser::Clock clock_of(const Config& config) {
  if (config.now_ns) return config.now_ns;
  return [] { return base::clock_ns(); };
}
}  // namespace

Compression::Compression(const Config& config, const fabric::Fabric& fabric)
    : clock_(clock_of(config)),
      fabric_(fabric),
      own_coder_(config.coder == nullptr ? make_coder() : nullptr),
      coder(config.coder == nullptr ? *own_coder_ : *config.coder),
      chooser(clock_) {}

namespace {

// What the numbers are that this member itself sends. What it passes on stays as it came, so that nothing is lost twice; and what
// is reduced is only touched where that is wished.
codecs::Elements numbers_in(const graph::Graph& graph, const graph::Export& block, const codecs::Wish& wish) {
  const bool own = block.after == graph::kNoStep && block.place.layout != graph::kScratch;
  const bool reduced = graph.reduction.op != OFFPATH_OP_NONE;
  if (!own || (reduced && !wish.reductions)) return codecs::Elements::unknown;
  switch (graph.reduction.element) {
    case OFFPATH_ELEMENT_F32:
    case OFFPATH_ELEMENT_C32:
      return codecs::Elements::float32;
    case OFFPATH_ELEMENT_F64:
    case OFFPATH_ELEMENT_C64:
      return codecs::Elements::float64;
    default:
      return codecs::Elements::unknown;
  }
}

}  // namespace

Compression::Plan Compression::plan(const codecs::Wish& wish, const graph::Graph& graph, const graph::Export& block,
                                    uint64_t bytes, uint64_t team, uint32_t readable) {
  const auto can_read = [&](const codecs::Method& method) { return method && (readable & bit_of(method.codec)) != 0; };
  if (wish.is_lossy()) {
    const codecs::Method method = wish.for_numbers(numbers_in(graph, block, wish));
    const bool whole = block.place.offset % std::max<size_t>(bytes_of(method.elements), 1) == 0;
    const bool numbers = method.elements != codecs::Elements::unknown && whole;
    if (numbers && can_read(method)) return {method};
  }
  if (wish.samples && bytes >= codecs::Chooser::kLeastBlockBytes) {
    const bool now = unsampled_ >= kBytesPerSample;
    unsampled_ = now ? bytes : unsampled_ + bytes;
    if (now) return {.samples = true};
  }
  const codecs::Wish lossless = wish.lossless();
  if (!lossless.decides_itself) return can_read(lossless.method) ? Plan{lossless.method} : Plan();
  if (bytes < codecs::Chooser::kLeastBlockBytes || readable == 0) return {};
  const auto size = static_cast<uint64_t>(std::bit_width(bytes));  // other lengths are other things, mostly
  return {.automatic = true, .kind = team + size};
}

CodedChunk* Compression::take() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<CodedChunk>());
    return all_.back().get();
  }
  CodedChunk* chunk = free_.back();
  free_.pop_back();
  return chunk;
}

void Compression::begin(uint64_t transfer, fabric::Peer peer, const Plan& plan) {
  if (!plan.automatic) return;
  if (open_.empty()) since_ns_ = clock_();
  open_[transfer] = {peer, {}};
  ++busy_[peer];
  chooser.begin(plan.kind);
}

codecs::Path Compression::path_to(fabric::Peer peer) {
  codecs::Link& link = links_[peer];
  link.look(clock_(), fabric_.backlog(peer));
  return link.path(static_cast<uint32_t>(busy_.size()));
}

codecs::Chooser::Decision Compression::decide(fabric::Peer peer, const Plan& plan, uint64_t bytes, uint64_t rest,
                                              uint32_t readable) {
  return chooser.decide(plan.kind, bytes, rest, path_to(peer), readable);
}

codecs::Chooser::Decision Compression::look(fabric::Peer peer, const Plan& plan, codecs::Bytes chunk, uint64_t rest,
                                            uint32_t readable) {
  const codecs::Path before = path_to(peer);
  const uint64_t begin = clock_();
  chooser.look(plan.kind, chunk);
  const auto took = static_cast<double>(clock_() - begin);
  const codecs::Path after = path_to(peer);
  if (!after.waits) chooser.pay(std::max(0.0, took - before.waiting_ns));
  return chooser.decide(plan.kind, chunk.size(), rest, after, readable);
}

void Compression::note_left(uint64_t transfer, fabric::Peer peer, uint64_t bytes, uint64_t wire_bytes,
                            codecs::CodecId codec) {
  const auto link = links_.find(peer);
  if (link == links_.end()) return;  // nobody asks
  link->second.left(clock_(), fabric_.backlog(peer), bytes, wire_bytes);
  const auto open = open_.find(transfer);
  if (open != open_.end() && codec != codecs::CodecId::none) open->second.coded_bytes[codec] += bytes;
}

void Compression::end(uint64_t transfer, std::optional<uint64_t> decode_ns) {
  const auto found = open_.extract(transfer);
  if (found.empty()) return;
  const fabric::Peer peer = found.mapped().peer;
  if (const auto busy = busy_.find(peer); --busy->second == 0) busy_.erase(busy);
  const uint64_t now = clock_();
  chooser.earn(static_cast<double>(now - std::exchange(since_ns_, now)));
  const auto link = links_.find(peer);
  if (!decode_ns || link == links_.end()) return;
  const uint64_t waiting = fabric_.backlog(peer);
  waiting == 0 ? link->second.arrived(now) : link->second.look(now, waiting);
  uint64_t all = 0;
  for (const auto& [codec, bytes] : found.mapped().coded_bytes) all += bytes;
  for (const auto& [codec, bytes] : found.mapped().coded_bytes) {
    link->second.decoded(codec, all, *decode_ns);
  }
}

}  // namespace offpath::engine
