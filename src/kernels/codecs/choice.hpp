// SPDX-License-Identifier: BSD-3-Clause
// Chooser: whether it pays to code what a worker sends, and how, where that is left to it. It knows the link's rate, how fast codecs are and how much they
// leave, all measured by whoever asks it; times are the caller's, in ns. docs/design/0021-compression.md has the
// reasons. Pure but for trying methods on samples, whose cost it is told the clock for. One thread.
#pragma once

#include "kernels/codecs/coding.hpp"

#include <functional>
#include <unordered_map>

namespace offpath::codecs {

enum class Advice : uint8_t {
  plain,
  look,  // with the first of its chunks, by look()
  coded  // by the method that method_for() has
};

class Chooser {
 public:
  using Clock = std::function<uint64_t()>;
  static constexpr uint64_t kLeastBlockBytes = 16 << 10;
  static constexpr uint64_t kLeastBusyBytes = 256 << 10;  // less says more of latencies than of the link
  static constexpr size_t kSampleBytes = 4 << 10;
  static constexpr double kShareOfLooks = 0.01;
  static constexpr double kMargin = 0.9;  // of the time without; what saves less does not pay

  explicit Chooser(Clock clock) : clock_(std::move(clock)) {}

  // `team`: whose blocks are alike. `readable`: the codecs that its receiver knows.
  Advice advise(uint64_t team, uint64_t bytes, uint32_t readable);
  Method method_for(uint64_t team) const;
  // Tries methods on a part of this chunk. Returns the one that pays, or none.
  Method look(uint64_t team, Bytes chunk, uint32_t readable);
  // What the method that leaves the fewest bytes makes of a part of this chunk, however fast it is.
  struct Sampled {
    uint64_t bytes = 0;
    uint64_t left = 0;
  };
  Sampled sample(Bytes chunk);
  // A chunk was coded; coded_bytes 0: it is not shorter. False: it did not pay.
  bool note_chunk(uint64_t team, const Method& method, uint64_t bytes, uint64_t coded_bytes, uint64_t ns);
  void forget(uint64_t team) { habits_.erase(team); }

  // The link was busy from the first of some blocks to the last one's arrival. `coded`: those of the bytes, as they were before.
  struct Busy {
    uint64_t ns = 0;
    uint64_t bytes = 0;  // of blocks
    uint64_t coded = 0;
    uint64_t wire_bytes = 0;
  };
  void note_busy(const Busy& busy);
  // Another such time begins: is it one in which nothing is coded, to see the link as it is?
  void begin_busy();

  double link_ns_per_byte() const { return link_; }  // 0: not known yet

 private:
  struct Habit {
    Method method;
    uint32_t uses = 0;       // since the last look
    uint32_t bad = 0;        // chunks in a row that did not pay
    uint32_t fruitless = 0;  // looks in a row that found nothing
  };
  Habit& habit_of(uint64_t team);
  Bytes part_of(Bytes chunk);
  double speed_of(const Method& method, double sampled) const;
  bool pays(double encode, double left) const;

  const Clock clock_;
  Coding trial_;
  std::vector<uint8_t> sample_, tried_;
  size_t samples_ = 0;
  std::unordered_map<uint64_t, Habit> habits_;
  std::map<std::pair<CodecId, uint8_t>, double> speeds_;  // ns per byte
  double link_ = 0;                                       // ns per byte
  double account_ns_ = 0;                                 // for looks
  double look_ns_ = 60'000;
  uint32_t busy_times_ = 0;
  uint32_t doubted_ =
      0;  // busy times left in which nothing is coded, because coding was slower than it should have been
  uint32_t doubts_ = 0;
  bool plain_only_ = false;
};

}  // namespace offpath::codecs
