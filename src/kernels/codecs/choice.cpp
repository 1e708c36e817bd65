// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/codecs/choice.hpp"

#include <algorithm>

namespace offpath::codecs {
namespace {

constexpr uint32_t kBlocksOfALook = 64;
constexpr uint32_t kMostFruitless = 10;  // then one block in 1,024 is looked at
constexpr uint32_t kIdlePerProbe = 256;  // chunks
constexpr size_t kMostHabits = 4096;
constexpr size_t kPieces = 4;           // of a sample
constexpr double kSavedLooks = 2048;    // what the account holds at most
constexpr double kFresh = 0.25;         // weight of what is new in what is known
constexpr double kWorthALook = 0.9;     // left of a sample
constexpr double kMargin = 0.95;        // of the time without: what saves less does not pay
constexpr double kPriceOfCores = 0.05;  // of what coding takes, even where nobody waits for it
constexpr double kHope = 0.85;          // of the time of what was not tried yet: so what is nearly best is tried
constexpr CodecId kFastFirst[] = {CodecId::lz4, CodecId::zstd};
constexpr uint8_t kWidths[] = {1, 4, 8};

// How much later the link is free again. Coding hides behind what waits to leave; and who decodes may be slower than all else.
double delay(const Estimate& estimate, double bytes, const Path& path) {
  const double coding = estimate.ns * bytes;
  const double idle = std::max(0.0, coding * path.in_turn - path.waiting_ns);
  const double time = std::max(idle + estimate.left * path.link_ns * bytes,
                               path.decode_ns[static_cast<size_t>(estimate.method.codec)] * bytes);
  return (time + kPriceOfCores * coding) * (estimate.tried ? 1 : kHope);
}

}  // namespace

const Estimate* choose(const Estimates& known, uint64_t bytes, const Path& path, uint32_t readable) {
  const auto length = static_cast<double>(bytes);
  const Estimate* best = nullptr;
  double least = kMargin * path.link_ns * length;
  for (const Estimate& estimate : known) {
    if ((readable & bit_of(estimate.method.codec)) == 0 || estimate.left >= 1) continue;
    const double time = delay(estimate, length, path);
    if (time >= least) continue;
    least = time;
    best = &estimate;
  }
  return best;
}

Chooser::Habit& Chooser::habit_of(uint64_t kind) {
  if (habits_.size() >= kMostHabits && !habits_.contains(kind)) habits_.clear();
  return habits_[kind];
}

void Chooser::begin(uint64_t kind) {
  Habit& habit = habit_of(kind);
  ++habit.blocks;
  habit.plain = false;
}

void Chooser::earn(double ns) { account_ns_ = std::min(account_ns_ + kShareOfLooks * ns, kSavedLooks * look_ns_); }

bool Chooser::afford(double link_ns, uint64_t bytes) {
  const double price = link_ns * static_cast<double>(bytes);
  if (account_ns_ < price) return false;
  account_ns_ -= price;
  return true;
}

Chooser::Decision Chooser::decide(uint64_t kind, uint64_t bytes, uint64_t rest, const Path& path, uint32_t readable) {
  if (readable == 0 || !path.known) return {};
  Habit& habit = habit_of(kind);
  if (habit.plain) return {};
  const uint32_t pause = habit.fruitless == 0 ? kBlocksOfALook : uint32_t{1} << habit.fruitless;
  const bool due = !habit.known || habit.blocks >= pause;
  const bool later = !path.waits && rest >= kLeastBlockBytes;  // behind this chunk nobody waits for a look
  if (due && !later && (path.waiting_ns >= look_ns_ || account_ns_ >= look_ns_)) return {Advice::look, {}};
  const Estimate* const best = choose(habit.estimates, bytes, path, readable);
  if (best == nullptr) return {};
  // Only a sender that gives a link as much as it can take finds out how fast the link is.
  const bool by_receiver = path.decode_ns[static_cast<size_t>(best->method.codec)] > best->left * path.link_ns;
  if (by_receiver && !path.waits && afford(path.link_ns, bytes + rest)) return habit.plain = true, Decision();
  if (path.idle && ++habit.idle > habit.most_idle && afford(path.link_ns, bytes)) {
    habit.idle = 0;
    habit.most_idle = std::min(2 * habit.most_idle, kIdlePerProbe);
    return {};
  }
  return {Advice::coded, best->method};
}

// Pieces from all over the chunk, elsewhere each time: its beginning may be of another kind than the rest, and a program may
// send the same again and again. They begin where numbers do, if the chunk does.
Bytes Chooser::part_of(Bytes chunk) {
  if (chunk.size() <= kSampleBytes) return chunk;
  sample_.resize(kSampleBytes);
  const size_t piece = kSampleBytes / kPieces, stretch = chunk.size() / kPieces;
  const size_t shift = samples_++ * 5 % 8 * (stretch - piece) / 8 / 8 * 8;
  for (size_t i = 0; i < kPieces; ++i) {
    const Bytes from = chunk.subspan(i * stretch / 8 * 8 + shift, piece);
    std::copy(from.begin(), from.end(), sample_.begin() + static_cast<std::ptrdiff_t>(i * piece));
  }
  return sample_;
}

Chooser::Sampled Chooser::sample(Bytes chunk) {
  const Bytes part = part_of(chunk);
  tried_.resize(kSampleBytes);
  Sampled out{part.size(), part.size()};
  for (const CodecId codec : kFastFirst) {
    for (const uint8_t width : kWidths) {
      const size_t left = trial_.encode({codec, width, 0}, part, Room(tried_).first(part.size()));
      if (left > 0) out.left = std::min<uint64_t>(out.left, left);
    }
  }
  return out;
}

void Chooser::look(uint64_t kind, Bytes chunk) {
  if (std::exchange(warm_, true) == false) sample(chunk);  // contexts are made once; that is no codec's speed
  const uint64_t begin = clock_();
  const Bytes part = part_of(chunk);
  const auto bytes = static_cast<double>(part.size());
  tried_.resize(kSampleBytes);
  Habit& habit = habit_of(kind);
  bool worth_it = false;
  size_t at = 0;
  for (const CodecId codec : kFastFirst) {
    for (const uint8_t width : kWidths) {
      Estimate& estimate = habit.estimates[at++];
      estimate.method = {codec, width, 0};
      const uint64_t start = clock_();
      const size_t coded = trial_.encode(estimate.method, part, Room(tried_).first(part.size()));
      const double ns = static_cast<double>(clock_() - start) / bytes;
      estimate.ns = estimate.ns == 0 ? ns : std::min(estimate.ns, ns);
      estimate.left = coded == 0 ? 1 : static_cast<double>(coded) / bytes;
      estimate.tried = false;
      worth_it = worth_it || estimate.left < kWorthALook;
    }
  }
  // Somebody else may have had the core meanwhile. With another filter a codec is about as fast.
  for (auto first = habit.estimates.begin(); first != habit.estimates.end(); first += std::size(kWidths)) {
    const auto faster = [](const Estimate& one, const Estimate& other) { return one.ns < other.ns; };
    const double least = std::min_element(first, first + std::size(kWidths), faster)->ns;
    std::for_each(first, first + std::size(kWidths), [&](Estimate& each) { each.ns = std::min(each.ns, 2 * least); });
  }
  habit.known = true;
  habit.blocks = 0;
  habit.fruitless = worth_it ? 0 : std::min(habit.fruitless + 1, kMostFruitless);
  look_ns_ += kFresh * (static_cast<double>(clock_() - begin) - look_ns_);
}

void Chooser::note_chunk(uint64_t kind, const Method& method, uint64_t bytes, uint64_t coded_bytes, uint64_t ns) {
  Habit& habit = habit_of(kind);
  const auto found = std::find_if(habit.estimates.begin(), habit.estimates.end(),
                                  [&](const Estimate& estimate) { return estimate.method == method; });
  if (found == habit.estimates.end()) return;
  const auto length = static_cast<double>(bytes);
  const double left = coded_bytes == 0 ? 1 : static_cast<double>(coded_bytes) / length;
  found->left = found->tried ? found->left + kFresh * (left - found->left) : left;
  // Somebody else may have had the core for a while: that happens seldom, and a codec is never faster than it is.
  const double took = static_cast<double>(ns) / length;
  found->ns += took < found->ns ? 0.5 * (took - found->ns) : kFresh * (std::min(took, 2 * found->ns) - found->ns);
  found->tried = true;
}

}  // namespace offpath::codecs
