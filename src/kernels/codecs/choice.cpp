// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/codecs/choice.hpp"

#include <algorithm>

namespace offpath::codecs {
namespace {

constexpr uint32_t kUsesOfALook = 64;
constexpr uint32_t kMostFruitless = 10;  // the next look may cost a thousandth of what the first one did
constexpr uint32_t kBadChunks = 6;       // one may be of another kind
constexpr uint32_t kBusyTimesPerProbe = 64;
constexpr uint32_t kMostDoubts = 8;
constexpr size_t kMostHabits = 4096;
constexpr size_t kPieces = 4;         // of a sample
constexpr double kSavedLooks = 2048;  // what the account holds at most
constexpr double kFresh = 0.25;       // weight of what is new in what is known
constexpr CodecId kFastFirst[] = {CodecId::lz4, CodecId::zstd};

}  // namespace

Chooser::Habit& Chooser::habit_of(uint64_t team) {
  if (habits_.size() >= kMostHabits && !habits_.contains(team)) habits_.clear();
  return habits_[team];
}

Method Chooser::method_for(uint64_t team) const {
  const auto found = habits_.find(team);
  return found == habits_.end() ? Method() : found->second.method;
}

Advice Chooser::advise(uint64_t team, uint64_t bytes, uint32_t readable) {
  if (bytes < kLeastBlockBytes || link_ == 0 || plain_only_ || doubted_ > 0) return Advice::plain;
  Habit& habit = habit_of(team);
  const bool usable = habit.method && (readable & bit_of(habit.method.codec)) != 0;
  if (usable && habit.uses++ < kUsesOfALook) return Advice::coded;
  const double price = look_ns_ * static_cast<double>(uint64_t{1} << habit.fruitless);
  if (account_ns_ < price) return usable ? Advice::coded : Advice::plain;
  account_ns_ -= price;
  return Advice::look;
}

// The pipeline is as fast as its slowest part; who decodes is taken to be no slower than who encodes, and note_busy() finds
// out where he is.
bool Chooser::pays(double encode, double left) const { return std::max(encode, left * link_) < kMargin * link_; }

double Chooser::speed_of(const Method& method, double sampled) const {
  const auto known = speeds_.find({method.codec, method.width});
  return known == speeds_.end() ? sampled : known->second;
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
    for (const uint8_t width : {1, 4, 8}) {
      const size_t left = trial_.encode({codec, width, 0}, part, Room(tried_).first(part.size()));
      if (left > 0) out.left = std::min<uint64_t>(out.left, left);
    }
  }
  return out;
}

Method Chooser::look(uint64_t team, Bytes chunk, uint32_t readable) {
  const uint64_t begin = clock_();
  const Bytes sample = part_of(chunk);
  const size_t bytes = sample.size();
  tried_.resize(kSampleBytes);
  Method best;
  double best_time = kMargin * link_;
  for (const CodecId codec : kFastFirst) {
    if ((readable & bit_of(codec)) == 0) continue;
    for (const uint8_t width : {1, 4, 8}) {
      const Method method{codec, width, 0};
      const uint64_t start = clock_();
      const size_t coded = trial_.encode(method, sample, Room(tried_).first(bytes));
      const double sampled = static_cast<double>(clock_() - start) / static_cast<double>(bytes);
      const double left = coded == 0 ? 1 : static_cast<double>(coded) / static_cast<double>(bytes);
      const double time = std::max(speed_of(method, sampled), left * link_);
      if (time >= best_time) continue;
      best_time = time;
      best = method;
    }
  }
  Habit& habit = habit_of(team);
  habit.method = best;
  habit.uses = 0;
  habit.bad = 0;
  habit.fruitless = best ? 0 : std::min(habit.fruitless + 1, kMostFruitless);
  look_ns_ += kFresh * (static_cast<double>(clock_() - begin) - look_ns_);
  return best;
}

bool Chooser::note_chunk(uint64_t team, const Method& method, uint64_t bytes, uint64_t coded_bytes, uint64_t ns) {
  const double speed = static_cast<double>(ns) / static_cast<double>(bytes);
  const auto known = speeds_.try_emplace({method.codec, method.width}, speed).first;
  known->second += kFresh * (speed - known->second);
  Habit& habit = habit_of(team);
  const double left = coded_bytes == 0 ? 1 : static_cast<double>(coded_bytes) / static_cast<double>(bytes);
  if (pays(known->second, left)) {
    habit.bad = 0;
    return true;
  }
  if (++habit.bad < kBadChunks) return false;
  habit.method = {};
  habit.fruitless = std::max(habit.fruitless, 1U);
  return false;
}

void Chooser::begin_busy() {
  plain_only_ = ++busy_times_ % kBusyTimesPerProbe == 0;
  if (doubted_ > 0) --doubted_;
}

void Chooser::note_busy(const Busy& busy) {
  if (busy.bytes < kLeastBusyBytes || busy.ns == 0) return;
  const auto ns = static_cast<double>(busy.ns);
  account_ns_ = std::min(account_ns_ + kShareOfLooks * ns, kSavedLooks * look_ns_);
  if (busy.coded == 0) {
    const double rate = ns / static_cast<double>(busy.bytes);
    link_ = link_ == 0 ? rate : link_ + 0.5 * (rate - link_);
    return;
  }
  // What went through it can go through it.
  link_ = std::min(link_, ns / static_cast<double>(std::max<uint64_t>(busy.wire_bytes, 1)));
  const bool mostly = busy.coded > busy.bytes / 2;
  if (!mostly) return;
  if (ns / static_cast<double>(busy.bytes) < link_) {
    doubts_ = 0;
  } else {
    doubted_ = uint32_t{1} << std::min(++doubts_, kMostDoubts);
  }
}

}  // namespace offpath::codecs
