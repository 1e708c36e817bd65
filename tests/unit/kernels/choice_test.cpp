// SPDX-License-Identifier: BSD-3-Clause
// What pays, on links and with codecs as fast as the test says: time goes on only when it says so, or as coding and looks are
// told to cost. The best fixed choice is what somebody takes who has seen all of it before.
#include "data.hpp"
#include "simulated_link.hpp"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

using namespace codecs;
using Advice = Chooser::Advice;

constexpr uint64_t kKind = 5, kChunk = 56 << 10;

// Doubles of a sparse matrix: noise in tiles, and nothing between them.
std::vector<uint8_t> tiles(size_t bytes) {
  std::vector<uint8_t> out(bytes);
  for (size_t at = 0; at + 8192 <= bytes; at += 32768) {
    const auto noise = random_bytes(8192, at);
    std::copy(noise.begin(), noise.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return out;
}

constexpr Method kNone;
const Method kFixed[] = {kNone, {CodecId::lz4}, {CodecId::lz4, 8}, {CodecId::zstd}, {CodecId::zstd, 8}};

// ns of the first block, and of one later on.
struct Times {
  double first = 0, later = 0;
};
Times measure(const World& world, const std::vector<uint8_t>& block, const Method* method) {
  SimulatedSender sender(world, block);
  constexpr int kWarm = 4, kBlocks = 40;
  Times out;
  for (int i = 0; i < kBlocks; ++i) {
    const double took = sender.send(method);
    if (i == 0) out.first = took;
    if (i >= kWarm) out.later += took / (kBlocks - kWarm);
  }
  return out;
}

struct Data {
  const char* name;
  std::vector<uint8_t> (*make)(size_t);
};
const Data kData[] = {{"text", text_bytes},
                      {"numbers", smooth_doubles},
                      {"tiles", tiles},
                      {"noise", [](size_t bytes) { return random_bytes(bytes); }}};
constexpr double kLinks[] = {80, 32, 8, 0.8, 0.1};  // 100 Mbit/s to 80 Gbit/s

// `behind`: the best fixed choice that much at most, later on.
void compare(const World& world, const Data& data, size_t bytes, double behind) {
  const auto block = data.make(bytes);
  const Times raw = measure(world, block, &kNone), own = measure(world, block, nullptr);
  double best = raw.later;
  for (const Method& method : kFixed) best = std::min(best, measure(world, block, &method).later);
  SCOPED_TRACE(std::string(data.name) + " of " + std::to_string(bytes >> 10) + " KiB at " +
               std::to_string(world.link_ns) + " ns a byte, best " + std::to_string(best) + ", own " +
               std::to_string(own.later) + ", raw " + std::to_string(raw.later));
  EXPECT_LE(own.later, behind * best);
  EXPECT_LE(own.later, (world.slow == 1 ? 1.05 : 1.25) * raw.later);
  // Whatever it has to find out; how slowly a receiver decodes is only known behind the first block.
  if (world.slow_receiver > 1) return;
  EXPECT_LE(own.first, 1.05 * raw.first + 1e6 * world.slow);
}

TEST(Auto, IsNearTheBestFixedChoice) {
  for (const Data& data : kData) {
    const bool vanishes = data.name == kData[0].name;  // then each probe is long against the rest
    for (const double link : kLinks) {
      for (const size_t bytes : {512U << 10, 2U << 20}) compare({link}, data, bytes, vanishes ? 1.12 : 1.03);
      compare({link}, data, 64 << 10, vanishes ? 1.5 : 1.1);
    }
  }
}

// A link that stands idle lets a burst through: what is shorter gains nothing, and the rest costs what it costs.
TEST(Auto, ABurstDoesNotHideTheLink) {
  for (const Data& data : kData) {
    for (const double link : {80, 32, 8}) {
      const World world{link, 128 << 10, 1, 1, 3e6};
      for (const size_t bytes : {512U << 10, 2U << 20}) compare(world, data, bytes, 1.25);
    }
  }
}

TEST(Auto, SlowCoresAndSlowReceivers) {
  for (const Data& data : kData) {
    for (const double link : kLinks) {
      for (const size_t bytes : {512U << 10, 2U << 20}) {
        compare({link, 0, 8}, data, bytes, 1.25);
        compare({link, 0, 1, 30}, data, bytes, 2);
      }
    }
  }
}

// What is told of a link, with a clock of the test's.
class Links : public ::testing::Test {
 protected:
  // So much is handed over, and passes at that rate; it is looked at now and then.
  void pass(uint64_t bytes, double ns_per_byte, bool coded = false) {
    link.left(now, 0, coded ? 4 * bytes : bytes, bytes);
    for (uint64_t left = bytes; left > 0; left -= std::min<uint64_t>(left, 4096)) {
      link.look(now, left);
      now += static_cast<uint64_t>(ns_per_byte * 4096);
    }
    link.look(now, 0);
  }
  Link link;
  uint64_t now = 1'000'000;
};

TEST_F(Links, AreNotKnownBeforeSomethingHasLeft) {
  EXPECT_FALSE(link.path(1).known);
  pass(16 << 10, 1);
  EXPECT_FALSE(link.path(1).known) << "so little says nothing";
  pass(64 << 10, 1);
  EXPECT_TRUE(link.path(1).known);
  EXPECT_NEAR(link.ns_per_byte(), 1, 0.1);
}

TEST_F(Links, AreAsFastAsWhatWaitsPasses) {
  pass(1 << 20, 80);
  EXPECT_NEAR(link.ns_per_byte(), 80, 4);
  now += 1'000'000'000;  // nothing is said of a time without anything to do
  pass(1 << 20, 80);
  EXPECT_NEAR(link.ns_per_byte(), 80, 4);
  for (int i = 0; i < 6; ++i) pass(1 << 20, 2);
  EXPECT_NEAR(link.ns_per_byte(), 2, 1) << "what was is forgotten";
}

TEST_F(Links, AReceiverThatDecodesSlowlyIsNoSlowLink) {
  pass(1 << 20, 2);
  link.decoded(CodecId::lz4, 4 << 20, 40 << 20);  // 10 ns for a byte, which was a quarter of one
  for (int i = 0; i < 4; ++i) pass(1 << 20, 40, true);
  EXPECT_NEAR(link.ns_per_byte(), 2, 0.2);
  EXPECT_EQ(link.path(1).decode_ns[static_cast<size_t>(CodecId::lz4)], 10);
}

Estimates known(std::initializer_list<Estimate> estimates) {
  Estimates out{};
  std::copy(estimates.begin(), estimates.end(), out.begin());
  return out;
}

TEST(Choose, WhatIsThereFirst) {
  const Estimates both = known({{{CodecId::lz4}, 0.5, 0.5, true}, {{CodecId::zstd}, 0.25, 2, true}});
  Path path{.link_ns = 8, .known = true};
  const auto chosen = [&](uint32_t readable = all_codecs()) {
    const Estimate* const best = choose(both, kChunk, path, readable);
    return best == nullptr ? CodecId::none : best->method.codec;
  };
  EXPECT_EQ(chosen(), CodecId::zstd) << "2 + 2 ns, not 0.5 + 4";
  EXPECT_EQ(chosen(bit_of(CodecId::lz4)), CodecId::lz4);
  EXPECT_EQ(chosen(0), CodecId::none);
  path.link_ns = 4;
  EXPECT_EQ(chosen(), CodecId::lz4) << "0.5 + 2 ns, not 2 + 1";
  path.waiting_ns = 2.0 * kChunk;
  EXPECT_EQ(chosen(), CodecId::zstd) << "coding hides behind what waits";
  path.in_turn = 4;
  EXPECT_EQ(chosen(), CodecId::lz4) << "but others' chunks are coded meanwhile, too";
  path = {.link_ns = 0.9, .known = true};
  EXPECT_EQ(chosen(), CodecId::none) << "0.5 + 0.45 ns, not 0.9";
  path = {.link_ns = 8, .known = true};
  path.decode_ns[static_cast<size_t>(CodecId::zstd)] = 5;
  EXPECT_EQ(chosen(), CodecId::lz4);
  path.decode_ns[static_cast<size_t>(CodecId::lz4)] = 9;
  path.decode_ns[static_cast<size_t>(CodecId::zstd)] = 9;
  EXPECT_EQ(chosen(), CodecId::none);
}

class Looks : public ::testing::Test {
 protected:
  Chooser chooser{[this] { return now += tick; }};
  uint64_t now = 0;
  uint64_t tick = 4'000;  // what passes between two looks at the clock: a sample of 4 KiB at 1 GB/s
  Path path{.link_ns = 8, .waiting_ns = 1e6, .waits = true, .known = true};

  Advice ask() { return chooser.decide(kKind, kChunk, 0, path, all_codecs()).advice; }
};

TEST_F(Looks, NobodyIsMadeToWaitForOne) {
  chooser.begin(kKind);
  path.waits = false;
  path.waiting_ns = 0;
  EXPECT_EQ(chooser.decide(kKind, kChunk, 1 << 20, path, all_codecs()).advice, Advice::plain) << "behind it";
  EXPECT_EQ(ask(), Advice::look) << "nothing is behind it";
  chooser.look(kKind, smooth_doubles(kChunk));
  EXPECT_EQ(ask(), Advice::coded);
  EXPECT_NE(chooser.decide(kKind + 1, kChunk, 0, path, all_codecs()).advice, Advice::coded) << "of another kind";
}

// A tile in the middle of a sparse matrix says little of it; and the same is sent again and again.
TEST_F(Looks, NoiseInOnePlaceDoesNotHideTheRest) {
  std::vector<uint8_t> mostly_empty(kChunk);
  const auto noise = random_bytes(8192);
  std::copy(noise.begin(), noise.end(), mostly_empty.begin() + (kChunk - 8192) / 2);
  chooser.look(kKind, mostly_empty);
  EXPECT_EQ(ask(), Advice::coded);
}

TEST_F(Looks, AreEverRarerWhereTheyFindNothing) {
  path.waits = false;
  path.waiting_ns = 0;  // each costs time
  uint64_t looks_ns = 0, looks = 0;
  constexpr uint64_t kBlocks = 20'000, kBlockNs = 8'000'000;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    chooser.begin(kKind);
    if (ask() == Advice::look) {
      const uint64_t begin = now;
      chooser.look(kKind, random_bytes(kChunk, i));
      looks_ns += now - begin, ++looks;
      chooser.pay(static_cast<double>(now - begin));
    }
    EXPECT_EQ(ask(), Advice::plain);
    chooser.earn(kBlockNs);
  }
  EXPECT_GE(looks, 10U);
  EXPECT_LE(looks, 30U);
  EXPECT_LE(static_cast<double>(looks_ns), 0.01 * kBlocks * kBlockNs);
}

TEST_F(Looks, MustBePaidFor) {
  path.waits = false;
  path.waiting_ns = 0;
  chooser.pay(1e9);
  chooser.begin(kKind);
  EXPECT_EQ(ask(), Advice::plain);
  path.waiting_ns = 1e6, path.waits = true;
  EXPECT_EQ(ask(), Advice::look) << "what waits pays";
}

TEST_F(Looks, WhatTurnsOutNotToShrinkIsGivenUp) {
  chooser.begin(kKind);
  chooser.look(kKind, text_bytes(kChunk));
  int coded = 0;
  for (; coded < 100; ++coded) {
    const auto decision = chooser.decide(kKind, kChunk, 0, path, all_codecs());
    if (decision.advice != Advice::coded) break;
    chooser.note_chunk(kKind, decision.method, kChunk, 0, kChunk);
  }
  EXPECT_GE(coded, 4) << "each may be tried";
  EXPECT_LE(coded, 12);
}

TEST_F(Looks, ASlowCodecIsGivenUp) {
  chooser.look(kKind, text_bytes(kChunk));
  path.waiting_ns = 0;
  int coded = 0;
  for (; coded < 200; ++coded) {
    const auto decision = chooser.decide(kKind, kChunk, 0, path, all_codecs());
    if (decision.advice != Advice::coded) break;
    chooser.note_chunk(kKind, decision.method, kChunk, kChunk / 4, 20 * kChunk);
  }
  EXPECT_LE(coded, 100);
}

}  // namespace
}  // namespace offpath::testing
