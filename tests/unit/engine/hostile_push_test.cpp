// SPDX-License-Identifier: BSD-3-Clause
// Blocks that nobody asked for and nobody should have sent.
#include "hostile.hpp"

#include <algorithm>

namespace offpath::testing {
namespace {

class HostilePush : public Hostile {
 protected:
  HostilePush() : Hostile(8, 8192) {
    say(about(Kind::hello, 0, 1, 0));  // else nothing is pushed to it
    settle();
  }
  uint64_t refused() { return honest->refused_count() - std::exchange(seen_, honest->refused_count()); }
  void say_push(uint64_t sequence, uint32_t from, uint32_t to, size_t bytes, uint32_t tag = 0,
                wire::Channel channel = wire::Channel::collectives) {
    Message message = about(Kind::push, sequence, from, to, channel);
    message.tag = tag;
    say(message, bytes);
    settle();
  }
  size_t answers() const {
    return static_cast<size_t>(
        std::count_if(heard.begin(), heard.end(), [](const Message& m) { return m.kind == Kind::done; }));
  }

 private:
  uint64_t seen_ = 0;
};

TEST_F(HostilePush, TheHonestOneIsTaken) {
  post();
  say_push(0, 1, 0, kBlock);
  EXPECT_EQ(outcome[0], OFFPATH_OK) << "its own block went unasked, too";
  EXPECT_EQ(target[kBlock], 0xBB);
  EXPECT_EQ(honest->refused_count(), 0U);
  expect_untouched();
}

TEST_F(HostilePush, ImpossibleOnesAreRefused) {
  post();
  client_memory->writes = 0;
  say_push(0, 0, 0, kBlock);  // from a member served here
  EXPECT_EQ(refused(), 1U);
  say_push(0, 2, 0, kBlock);
  EXPECT_EQ(refused(), 1U);
  say_push(0, UINT32_MAX, 0, kBlock);
  EXPECT_EQ(refused(), 1U);
  say_push(0, 1, 0, 4097);
  EXPECT_EQ(refused(), 1U);
  say_push(0, 1, 0, 10, 0, wire::Channel::calls);
  EXPECT_EQ(refused(), 1U);
  say_push(wire::kNoOperation, 1, 0, 10);
  EXPECT_EQ(refused(), 1U);
  say_push(0, 1, 7, kBlock);  // a team member that is not here may come yet
  say_push(0, 1, 0, kBlock, 9);
  EXPECT_EQ(refused(), 0U);
  EXPECT_TRUE(outcome.empty());
  EXPECT_EQ(client_memory->writes, 0);
  expect_untouched();
  say_push(0, 1, 0, kBlock);
  EXPECT_EQ(outcome[0], OFFPATH_OK);
}

TEST_F(HostilePush, TooLongForTheBlockFailsItsOperationOnly) {
  post();
  say_push(0, 1, 0, kBlock + 1);
  EXPECT_EQ(outcome[0], OFFPATH_ERR_TRUNCATED);
  expect_untouched();
  for (const uint8_t byte : target) ASSERT_TRUE(byte == 0x22 || byte == 0x11);
}

TEST_F(HostilePush, TwiceIsOnce) {
  say_push(0, 1, 0, kBlock);
  payload.assign(payload.size(), 0xCC);
  say_push(0, 1, 0, kBlock);
  EXPECT_EQ(refused(), 1U);
  post();
  say_push(0, 1, 0, kBlock);
  EXPECT_EQ(outcome[0], OFFPATH_OK);
  EXPECT_EQ(target[kBlock], 0xBB);
  honest->tell_senders();
  settle();
  EXPECT_EQ(answers(), 2U) << "the first, and the last that came too late";
}

TEST_F(HostilePush, AFloodIsBounded) {
  for (uint64_t i = 0; i < 10000; ++i) say_push(1000 + i, 1, 0, 100);
  EXPECT_EQ(honest->refused_count(), 10000U - 32U);
  post();
  take();
  say(data(kBlock, 0), kBlock);
  settle();
  EXPECT_EQ(outcome[0], OFFPATH_OK) << "who asks is not held up";
  // Those for teams that never come push each other out.
  Message foreign = about(Kind::push, 0, 1, 0);
  for (uint32_t i = 0; i < 1000; ++i) {
    memcpy(foreign.team.bytes.data() + 4, &i, sizeof(i));
    say(foreign, 4000);
  }
  settle();
  expect_untouched();
}

TEST_F(HostilePush, AnswersToNothingAreIgnored) {
  post();
  for (const Kind kind : {Kind::done, Kind::pull}) {
    say(about(kind, 99, 0, 1)), say(about(kind, 0, 0, 7)), say(about(kind, 0, 7, 1));
  }
  settle();
  EXPECT_TRUE(outcome.empty());
  say_push(0, 1, 0, kBlock);
  EXPECT_EQ(outcome[0], OFFPATH_OK);
  expect_untouched();
}

}  // namespace
}  // namespace offpath::testing
