// SPDX-License-Identifier: BSD-3-Clause
// What pays, on links and with codecs as fast as the test says: time goes on only when it says so, or as a look is told to
// cost.
#include "data.hpp"
#include "kernels/codecs/choice.hpp"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

using namespace codecs;

constexpr uint64_t kTeam = 5, kBlock = 1 << 20;
constexpr uint64_t kChunk = 56 << 10;

class Choice : public ::testing::Test {
 protected:
  Chooser chooser{[this] { return now += tick; }};
  uint64_t now = 0;
  uint64_t tick = 4'000;  // what passes between two looks at the clock: a sample of 4 KiB at 1 GB/s

  // A block left as it was, on a link of so many ns per byte.
  void send_plain(double ns_per_byte, uint64_t bytes = kBlock) {
    chooser.begin_busy();
    chooser.note_busy({static_cast<uint64_t>(ns_per_byte * static_cast<double>(bytes)), bytes, 0, bytes});
  }
  Advice ask(uint64_t bytes = kBlock, uint32_t readable = all_codecs()) {
    return chooser.advise(kTeam, bytes, readable);
  }
  // Blocks go as they are until it wants to look; how many.
  int send_until_look(double ns_per_byte) {
    for (int blocks = 0; blocks < 100'000; ++blocks) {
      if (ask() == Advice::look) return blocks;
      send_plain(ns_per_byte);
    }
    return -1;
  }
};

TEST_F(Choice, NothingIsDoneBeforeTheLinkIsKnown) {
  EXPECT_EQ(ask(), Advice::plain);
  send_plain(8, Chooser::kLeastBusyBytes - 1);
  EXPECT_EQ(chooser.link_ns_per_byte(), 0) << "so little says nothing of it";
  EXPECT_EQ(ask(), Advice::plain);
}

TEST_F(Choice, ASlowLinkAndGoodDataPay) {
  ASSERT_GE(send_until_look(8), 1);  // 1 Gbit/s
  EXPECT_TRUE(chooser.look(kTeam, smooth_doubles(kChunk), all_codecs()));
  EXPECT_EQ(ask(), Advice::coded);
  EXPECT_EQ(chooser.method_for(kTeam).width, 8) << "of numbers";
  EXPECT_EQ(chooser.advise(kTeam + 1, kBlock, all_codecs()), Advice::plain) << "nothing is known of another team";
  EXPECT_EQ(ask(Chooser::kLeastBlockBytes - 1), Advice::plain);
  EXPECT_EQ(ask(kBlock, 0), Advice::plain) << "the receiver reads nothing";
}

// A tile in the middle of a sparse matrix says little of it; and the same is sent again and again.
TEST_F(Choice, NoiseInOnePlaceDoesNotHideTheRest) {
  ASSERT_GE(send_until_look(8), 1);
  std::vector<uint8_t> mostly_empty(kChunk);
  const auto noise = random_bytes(8192);
  std::copy(noise.begin(), noise.end(), mostly_empty.begin() + (kChunk - 8192) / 2);
  EXPECT_TRUE(chooser.look(kTeam, mostly_empty, all_codecs()));
}

TEST_F(Choice, AFastLinkDoesNot) {
  ASSERT_GE(send_until_look(0.2), 1);  // 40 Gbit/s, and codecs do 1 GB/s
  EXPECT_FALSE(chooser.look(kTeam, text_bytes(kChunk), all_codecs()));
  EXPECT_EQ(ask(), Advice::plain);
}

TEST_F(Choice, RandomDataIsLookedAtEverMoreRarely) {
  const double link = 8;
  int before = 0;
  uint64_t blocks = 0, looks_ns = 0;
  for (int looks = 0; looks < 9; ++looks) {
    const int until = send_until_look(link);
    ASSERT_GE(until, before) << looks;
    before = until;
    blocks += static_cast<uint64_t>(until);
    const uint64_t begin = now;
    EXPECT_FALSE(chooser.look(kTeam, random_bytes(kChunk, static_cast<uint64_t>(looks)), all_codecs()));
    looks_ns += now - begin;
  }
  EXPECT_GE(before, 64);
  EXPECT_LE(static_cast<double>(looks_ns), 0.01 * link * static_cast<double>(blocks * kBlock));
}

TEST_F(Choice, WhatTurnsOutNotToPayIsGivenUp) {
  ASSERT_GE(send_until_look(8), 1);
  const Method method = chooser.look(kTeam, text_bytes(kChunk), all_codecs());
  EXPECT_TRUE(chooser.note_chunk(kTeam, method, kChunk, kChunk / 4, kChunk));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(chooser.note_chunk(kTeam, method, kChunk, 0, kChunk));
  EXPECT_EQ(ask(), Advice::coded) << "some may be of another kind";
  EXPECT_TRUE(chooser.note_chunk(kTeam, method, kChunk, kChunk / 4, kChunk));
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(chooser.note_chunk(kTeam, method, kChunk, 0, kChunk));
  EXPECT_NE(ask(), Advice::coded);
}

TEST_F(Choice, ASlowCodecIsGivenUp) {
  ASSERT_GE(send_until_look(8), 1);
  const Method method = chooser.look(kTeam, text_bytes(kChunk), all_codecs());
  bool pays = true;
  for (int i = 0; i < 20 && pays; ++i) pays = chooser.note_chunk(kTeam, method, kChunk, kChunk / 4, 20 * kChunk);
  EXPECT_FALSE(pays);
}

// The receiver may be slower than anything that is known here.
TEST_F(Choice, WhatIsSlowerThanPlainIsDoubted) {
  ASSERT_GE(send_until_look(8), 1);
  ASSERT_TRUE(chooser.look(kTeam, text_bytes(kChunk), all_codecs()));
  int coded = 0;
  for (int i = 0; i < 200; ++i) {
    chooser.begin_busy();
    if (ask() == Advice::coded) {
      ++coded;
      chooser.note_busy({20 * kBlock, kBlock, kBlock, kBlock / 4});
    } else {
      chooser.note_busy({8 * kBlock, kBlock, 0, kBlock});
    }
  }
  EXPECT_GE(coded, 3);
  EXPECT_LE(coded, 12) << "each time it waits twice as long";
}

TEST_F(Choice, NowAndThenTheLinkIsSeenAsItIs) {
  ASSERT_GE(send_until_look(8), 1);
  ASSERT_TRUE(chooser.look(kTeam, text_bytes(kChunk), all_codecs()));
  int plain = 0;
  for (int i = 0; i < 256; ++i) {
    chooser.begin_busy();
    const Advice advice = ask();
    plain += advice == Advice::plain ? 1 : 0;
    if (advice == Advice::look) chooser.look(kTeam, text_bytes(kChunk), all_codecs());
    chooser.note_busy(advice == Advice::plain ? Chooser::Busy{8 * kBlock, kBlock, 0, kBlock}
                                              : Chooser::Busy{2 * kBlock, kBlock, kBlock, kBlock / 4});
  }
  EXPECT_GE(plain, 3);
  EXPECT_LE(plain, 5);
}

}  // namespace
}  // namespace offpath::testing
