// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/codecs/link.hpp"

#include <algorithm>
#include <utility>

namespace offpath::codecs {
namespace {

constexpr uint64_t kEmptyBytes = 2 << 10;     // acknowledged late, perhaps: as good as nothing
constexpr uint64_t kTellingBytes = 32 << 10;  // fewer say more of latencies
constexpr uint64_t kLeastBytes = 4 << 10;     // where there is no more
constexpr uint64_t kLongNs = 1'000'000;       // no answer takes so long by itself
constexpr double kAssumedNs = 8;              // 1 Gbit/s, until it shows what it is
constexpr uint64_t kKnownBytes = 64 << 10;
constexpr double kMemoryBytes = 1 << 20;  // what is older counts ever less
constexpr double kFreshOfLink = 0.25;     // weight of what is new

void approach(double& known, double seen) { known += (known == 0 ? 1 : kFreshOfLink) * (seen - known); }

}  // namespace

void Link::left(uint64_t now, uint64_t waiting, uint64_t bytes, uint64_t wire_bytes) {
  look(now, waiting);
  stood_idle_ = waiting_ <= kEmptyBytes;
  if (stood_idle_) since_ = now, passed_ = 0, coded_ = false;
  waiting_ += wire_bytes;
  left_ += wire_bytes;
  if (wire_bytes == bytes) return;
  if (!coded_ && passed_ >= kLeastBytes)
    note(now, passed_, true);  // what is seen while all went as it was is worth more
  coded_ = true;
  approach(left_of_coded_, static_cast<double>(wire_bytes) / static_cast<double>(bytes));
}

void Link::look(uint64_t now, uint64_t waiting) {
  passed_ += waiting_ - std::min(waiting, waiting_);
  waiting_ = waiting;
  const bool busy = waiting > kEmptyBytes;
  if (busy && passed_ < kTellingBytes) return;  // it goes on
  note(now, passed_, busy);
}

void Link::arrived(uint64_t now) {
  passed_ += waiting_;
  waiting_ = 0;
  note(now, passed_, now - std::min(since_, now) >= kLongNs);
}

void Link::decoded(CodecId codec, uint64_t bytes, uint64_t ns) {
  const auto index = static_cast<size_t>(codec);
  if (bytes == 0 || index >= decode_ns_.size()) return;
  const double seen = static_cast<double>(ns) / static_cast<double>(bytes);
  double& known = decode_ns_[index];
  approach(known, known == 0 ? seen : std::min(seen, 2 * known));  // its core may have been somebody else's for a while
  slowest_ns_ = *std::max_element(decode_ns_.begin(), decode_ns_.end());
}

// `busy`: all the time. Else the link may be faster than that, how much is not known.
void Link::note(uint64_t now, uint64_t passed, bool busy) {
  const auto ns = static_cast<double>(now - std::min(since_, now)), bytes = static_cast<double>(passed);
  since_ = now;
  passed_ = 0;
  const bool coded = std::exchange(coded_, coded_ && waiting_ > kEmptyBytes);
  if (ns == 0 || passed < kLeastBytes) return;
  // A receiver that decodes slowly looks like a slow link, on which coding would seem to pay.
  if (coded && (slowest_ns_ == 0 || ns / bytes * left_of_coded_ <= 2 * slowest_ns_)) busy = false;
  if (!busy && ns / bytes >= ns_per_byte()) return;
  if (!busy && !measured_) ns_ = bytes_ = 0;  // it is no more than that
  measured_ = measured_ || busy;
  ns_ += ns;
  bytes_ += bytes;
  if (bytes_ <= kMemoryBytes) return;
  ns_ *= kMemoryBytes / bytes_;
  bytes_ = kMemoryBytes;
}

double Link::ns_per_byte() const { return bytes_ > 0 ? ns_ / bytes_ : kAssumedNs; }

// What it takes for a link that stands idle meanwhile is not known: only that it is not more.
Path Link::path(uint32_t in_turn) const {
  const bool waits = waiting_ > kEmptyBytes;
  const double waiting_ns = waits && !stood_idle_ ? static_cast<double>(waiting_) * ns_per_byte() : 0;
  return {ns_per_byte(), waiting_ns, waits, stood_idle_, left_ >= kKnownBytes, decode_ns_, in_turn};
}

}  // namespace offpath::codecs
