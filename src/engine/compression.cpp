// SPDX-License-Identifier: BSD-3-Clause
#include "engine/compression.hpp"

#include "base/clock.hpp"
#include "engine/engine.hpp"

namespace offpath::engine {

namespace {
constexpr uint64_t kLongestBusyNs = 50'000'000;  // of blocks without a pause between them
// A sample takes some 50 us; these take 13 ms at 10 Gbit/s.
constexpr uint64_t kBytesPerSample = 16 << 20;

codecs::Chooser::Clock clock_of(const Config& config) {
  if (config.now_ns) return config.now_ns;
  return [] { return base::clock_ns(); };
}
}  // namespace

Compression::Compression(const Config& config)
    : clock_(clock_of(config)),
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
    if (numbers && can_read(method)) return {codecs::Advice::coded, method, false};
  }
  if (wish.samples && bytes >= codecs::Chooser::kLeastBlockBytes) {
    const bool now = unsampled_ >= kBytesPerSample;
    unsampled_ = now ? bytes : unsampled_ + bytes;
    if (now) return {codecs::Advice::look, {}, false, true};
  }
  const codecs::Wish lossless = wish.lossless();
  if (!lossless.decides_itself) {
    return {can_read(lossless.method) ? codecs::Advice::coded : codecs::Advice::plain, lossless.method, false};
  }
  measures_ = true;
  const codecs::Advice advice = chooser.advise(team, bytes, readable);
  return {advice, chooser.method_for(team), true};
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

void Compression::begin(uint64_t transfer) {
  if (!measures_) return;
  if (open_.empty()) {
    busy_ = {};
    busy_since_ns_ = clock_();
    chooser.begin_busy();
  }
  open_[transfer] = {};
}

void Compression::note_sent(uint64_t transfer, uint64_t bytes, uint64_t wire_bytes) {
  const auto found = open_.find(transfer);
  if (found == open_.end()) return;
  found->second.bytes += bytes;
  found->second.wire_bytes += wire_bytes;
  if (wire_bytes < bytes) found->second.coded += bytes;
}

void Compression::end(uint64_t transfer) {
  const auto found = open_.extract(transfer);
  if (found.empty()) return;
  busy_.bytes += found.mapped().bytes;
  busy_.wire_bytes += found.mapped().wire_bytes;
  busy_.coded += found.mapped().coded;
  const uint64_t now = clock_();
  busy_.ns = now - busy_since_ns_;
  if (!open_.empty() && busy_.ns < kLongestBusyNs) return;
  chooser.note_busy(busy_);
  busy_ = {};
  busy_since_ns_ = now;
  if (!open_.empty()) chooser.begin_busy();
}

}  // namespace offpath::engine
