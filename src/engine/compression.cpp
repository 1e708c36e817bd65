// SPDX-License-Identifier: BSD-3-Clause
#include "engine/compression.hpp"

#include "base/clock.hpp"
#include "engine/engine.hpp"

namespace offpath::engine {

namespace {
constexpr uint64_t kLongestBusyNs = 50'000'000;  // of blocks without a pause between them

codecs::Chooser::Clock clock_of(const Config& config) {
  if (config.now_ns) return config.now_ns;
  return [] { return base::clock_ns(); };
}
}  // namespace

Compression::Compression(const Config& config)
    : clock_(clock_of(config)),
      own_coder_(config.coder == nullptr ? make_coder() : nullptr),
      coder(config.coder == nullptr ? *own_coder_ : *config.coder),
      chooser(config.compress, clock_) {}

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
  if (!chooser.wish().decides_itself) return;
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
