// SPDX-License-Identifier: BSD-3-Clause
// Chooser: whether it pays to code a chunk, and how, where that is left to it. What it compares is when the link will be free
// again: a chunk that is coded while others wait to leave costs nothing but what is left of it. What codecs leave and how long
// they take it knows from samples, and then from each chunk that was coded. docs/design/0021-compression.md has the reasons.
// Pure but for trying methods on samples, whose cost it is told the clock for. One thread.
#pragma once

#include "kernels/codecs/coding.hpp"
#include "kernels/codecs/link.hpp"

#include <array>
#include <functional>
#include <unordered_map>

namespace offpath::codecs {

// What is known of a method, for blocks of one kind.
struct Estimate {
  Method method;
  double left = 1;     // of a byte
  double ns = 0;       // to code a byte
  bool tried = false;  // on chunks, not only on a sample
};

inline constexpr size_t kChoices = 6;
using Estimates = std::array<Estimate, kChoices>;

// The method by which a chunk of so many bytes is there first; null: as it is.
const Estimate* choose(const Estimates& known, uint64_t bytes, const Path& path, uint32_t readable);

class Chooser {
 public:
  using Clock = std::function<uint64_t()>;
  static constexpr uint64_t kLeastBlockBytes = 16 << 10;
  static constexpr size_t kSampleBytes = 4 << 10;
  static constexpr double kShareOfLooks = 0.01;

  explicit Chooser(Clock clock) : clock_(std::move(clock)) {}

  // A block begins. `kind`: whose blocks are alike.
  void begin(uint64_t kind);
  enum class Advice : uint8_t { plain, look, coded };
  struct Decision {
    Advice advice = Advice::plain;
    Method method = {};
  };
  // Its next chunk has so many bytes, and so many are behind that. `readable`: the codecs that its receiver knows. After look() it is asked again.
  Decision decide(uint64_t kind, uint64_t bytes, uint64_t rest, const Path& path, uint32_t readable);
  // Tries methods on a part of this chunk.
  void look(uint64_t kind, Bytes chunk);
  // That look has delayed what leaves by so much.
  void pay(double ns) { account_ns_ -= ns; }
  // Blocks have been under way for so long: a part of it may be spent on looks.
  void earn(double ns);
  // A chunk was coded; coded_bytes 0: it is not shorter.
  void note_chunk(uint64_t kind, const Method& method, uint64_t bytes, uint64_t coded_bytes, uint64_t ns);

  // What the method that leaves the fewest bytes makes of a part of this chunk, however fast it is.
  struct Sampled {
    uint64_t bytes = 0;
    uint64_t left = 0;
  };
  Sampled sample(Bytes chunk);

 private:
  struct Habit {
    Estimates estimates = {};
    uint32_t blocks = 0;     // since the last look
    uint32_t fruitless = 0;  // looks in a row that found nothing
    uint32_t idle = 0;       // chunks coded in a row while the link had nothing to do
    uint32_t most_idle = 1;  // then one goes as it is
    bool plain = false;      // so does all of this block
    bool known = false;
  };
  Habit& habit_of(uint64_t kind);
  // To send so much as it is, to see how fast that goes.
  bool afford(double link_ns, uint64_t bytes);
  Bytes part_of(Bytes chunk);

  const Clock clock_;
  Coding trial_;
  std::vector<uint8_t> sample_, tried_;
  size_t samples_ = 0;
  bool warm_ = false;
  std::unordered_map<uint64_t, Habit> habits_;
  double look_ns_ = 60'000;
  double account_ns_ = 8 * 60'000;  // for looks: the first ones are free
};

}  // namespace offpath::codecs
