// SPDX-License-Identifier: BSD-3-Clause
// The exchange by itself: what is kept, in which order, and how much of it.
#include "engine/core/exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace offpath::engine {
namespace {

using Bytes = std::vector<uint8_t>;

wire::Message pull(uint64_t id) {
  wire::Message message;
  message.pull_id = id;
  return message;
}

TEST(Exchange, PullsWaitInTheirOrderUntilTheirOperationComes) {
  Exchange exchange(4);
  const OperationKey first{.number = 1}, second{.number = 2}, call{wire::Channel::answers, 1, 3};
  for (uint64_t id = 0; id < 9; ++id) exchange.ask(id % 3 == 0 ? first : id % 3 == 1 ? second : call, pull(id));
  std::vector<uint64_t> ids;
  for (const wire::Message& message : exchange.take_pulls(second)) ids.push_back(message.pull_id);
  EXPECT_EQ(ids, (std::vector<uint64_t>{1, 4, 7}));
  EXPECT_TRUE(exchange.take_pulls(second).empty());
  EXPECT_EQ(exchange.pulls_waiting(), 6U);
  exchange.forget_calls_of(2);
  EXPECT_EQ(exchange.pulls_waiting(), 6U);
  exchange.forget_calls_of(3);
  EXPECT_EQ(exchange.pulls_waiting(), 3U);
  exchange.forget_pulls();
  EXPECT_TRUE(exchange.take_pulls(first).empty());
}

TEST(Exchange, OnlyWhoWasHeardOfIsSentWhatItHasNotAskedForAndNotTooMuch) {
  Exchange exchange(3);
  EXPECT_FALSE(exchange.may_push(1));
  exchange.note_present(1);
  for (uint32_t tag = 0; tag < Exchange::kMaxUnanswered; ++tag) {
    ASSERT_TRUE(exchange.may_push(1));
    exchange.note_pushed({7, 1, tag});
    exchange.note_pushed({7, 1, tag});  // is the same block
  }
  EXPECT_FALSE(exchange.may_push(1));
  EXPECT_FALSE(exchange.answer({7, 2, 0})) << "another member's";
  EXPECT_TRUE(exchange.answer({7, 1, 5}));
  EXPECT_FALSE(exchange.answer({7, 1, 5})) << "once";
  EXPECT_TRUE(exchange.may_push(1));
  EXPECT_FALSE(exchange.may_push(2));
  EXPECT_EQ(exchange.unanswered().size(), Exchange::kMaxUnanswered - 1);
}

TEST(Exchange, WhatCameUnaskedIsKeptOnceAndWithinBounds) {
  Exchange exchange(2);
  EXPECT_TRUE(exchange.keep({3, 1, 0}, Bytes{1, 2}));
  EXPECT_FALSE(exchange.keep({3, 1, 0}, Bytes{9})) << "the same again";
  EXPECT_EQ(exchange.take({3, 1, 0}), Bytes({1, 2}));
  EXPECT_EQ(exchange.take({3, 1, 0}), std::nullopt);
  for (uint32_t i = 0; i < Exchange::kMaxUnanswered; ++i) ASSERT_TRUE(exchange.keep({i, 1, 0}, {}));
  EXPECT_FALSE(exchange.keep({99, 1, 0}, {}));
  EXPECT_TRUE(exchange.keep({99, 0, 0}, {})) << "each member for itself";
  std::vector<uint64_t> forgotten;
  exchange.forget(10, 20, [&](const BlockKey& block) { forgotten.push_back(block.number); });
  EXPECT_EQ(forgotten.size(), 10U);
  EXPECT_EQ(forgotten.front(), 10U);
  EXPECT_TRUE(exchange.keep({99, 1, 0}, {}));
  int members = 0;
  exchange.for_each_kept(99, [&](uint32_t) { ++members; });
  EXPECT_EQ(members, 2);
}

// Whatever happens, what is kept and what is unanswered is what a plain list says.
TEST(Exchange, AgreesWithAListUnderRandomUse) {
  std::mt19937_64 random(5);
  Exchange exchange(3);
  std::map<BlockKey, Bytes> kept;
  std::set<BlockKey> pushed;
  const auto of_member = [](const auto& all, uint32_t member, auto key_of) {
    return static_cast<uint32_t>(
        std::count_if(all.begin(), all.end(), [&](const auto& x) { return key_of(x).member == member; }));
  };
  for (uint32_t member = 0; member < 3; ++member) exchange.note_present(member);
  for (int i = 0; i < 20000; ++i) {
    const BlockKey block{random() % 40, static_cast<uint32_t>(random() % 3), static_cast<uint32_t>(random() % 3)};
    const Bytes bytes(random() % 3, static_cast<uint8_t>(i));
    const bool room = of_member(kept, block.member, [](const auto& x) { return x.first; }) < Exchange::kMaxUnanswered;
    switch (random() % 5) {
      case 0:
        ASSERT_EQ(exchange.keep(block, bytes), room && kept.try_emplace(block, bytes).second);
        break;
      case 1: {
        const auto found = kept.find(block);
        ASSERT_EQ(exchange.take(block), found == kept.end() ? std::nullopt : std::optional(found->second));
        kept.erase(block);
        break;
      }
      case 2:
        exchange.forget(block.number, block.number + 2, [&](const BlockKey& gone) { ASSERT_EQ(kept.erase(gone), 1U); });
        ASSERT_EQ(kept.lower_bound({block.number, 0, 0}), kept.lower_bound({block.number + 2, 0, 0}));
        break;
      case 3:
        ASSERT_EQ(exchange.may_push(block.member),
                  of_member(pushed, block.member, [](const auto& x) { return x; }) < Exchange::kMaxUnanswered);
        if (exchange.may_push(block.member)) exchange.note_pushed(block), pushed.insert(block);
        break;
      default:
        ASSERT_EQ(exchange.answer(block), pushed.erase(block) == 1);
    }
  }
}

}  // namespace
}  // namespace offpath::engine
