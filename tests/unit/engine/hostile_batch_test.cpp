// SPDX-License-Identifier: BSD-3-Clause
// Batches made to harm: what is wrong inside is refused, what is right is done, nothing else happens.
#include "hostile.hpp"

namespace offpath::testing {
namespace {

class HostileBatch : public Hostile {
 protected:
  HostileBatch() : Hostile(6, 1000) {}
};

TEST_F(HostileBatch, MayCarryAnythingThatMayComeAlone) {
  post();
  say_batch(pack({{about(Kind::hello, 0, 0, 1), 0}, {about(Kind::pull, 0, 0, 1), 0}, {data(kBlock, 0), kBlock}}));
  settle();
  say(about(Kind::done, 0, 0, 1));
  expect_untouched();
  EXPECT_EQ(outcome[0], OFFPATH_OK);
  EXPECT_EQ(target[kBlock], 0xBB);
  EXPECT_EQ(honest->refused_count(), 0U);
}

TEST_F(HostileBatch, WhatIsWrongInsideIsRefusedAndTheRestIsNot) {
  post();
  Message nested;
  nested.kind = Kind::batch;
  client_memory->writes = 0;
  uint64_t refused = honest->refused_count();
  const auto expect_refused = [&](const Entries& entries, uint64_t count) {
    say_batch(pack(entries));
    settle();
    EXPECT_EQ(honest->refused_count() - std::exchange(refused, honest->refused_count()), count);
  };
  expect_refused({{nested, 0}}, 1);
  expect_refused({{nested, 90}, {about(Kind::hello, 0, 0, 1), 0}, {nested, 10}}, 2);
  expect_refused({{about(Kind::done, 0, 0, 1), 8}}, 1);
  expect_refused({{data(kBlock, 1), kBlock}}, 1);
  expect_refused({{data(kBlock + 1, 0), 10}}, 1);
  auto wrong = pack({{about(Kind::hello, 0, 0, 1), 0}, {about(Kind::hello, 0, 0, 1), 0}});
  wrong[wire::kEntryOverheadBytes] = 'X';
  say_batch(wrong);
  say_batch(std::vector<uint8_t>(3, 0));    // no entry
  say_batch(std::vector<uint8_t>(300, 0));  // entries without a header
  say_batch({});
  settle();
  EXPECT_EQ(honest->refused_count() - refused, 1U + 1U + 50U + 1U);
  EXPECT_EQ(client_memory->writes, 0);
  expect_untouched();
  EXPECT_TRUE(outcome.empty());
  say_batch(pack({{nested, 0}, {data(kBlock, 0), kBlock}}));
  take();
  EXPECT_EQ(outcome[0], OFFPATH_OK);
}

TEST_F(HostileBatch, CutOnesEndWhereTheyAreCut) {
  post();
  const auto whole = pack({{data(kBlock, 0), 100}, {data(kBlock, 100), 100}});
  for (size_t length = 1; length < whole.size(); ++length) {
    if (length == whole.size() / 2) continue;  // one entry, in order
    const uint64_t before = honest->refused_count();
    say_batch({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    settle();
    EXPECT_GT(honest->refused_count(), before) << length;
  }
  expect_untouched();
}

TEST_F(HostileBatch, MutatedOnesNeverEscape) {
  std::mt19937_64 random(12);
  for (uint64_t sequence = 0; sequence < 60; ++sequence) {
    post(sequence);
    for (int i = 0; i < 40; ++i) {
      Entries entries(random() % 8);
      for (auto& [m, bytes] : entries) {
        m = about(static_cast<Kind>(1 + random() % 9), random() % 3 == 0 ? random() : sequence, 0, 1);
        m.pull_id = pull_for(sequence).pull_id;
        m.status = -static_cast<int32_t>(random() % 12);
        m.offset = random() % 300;
        if (random() % 2 == 0) m.bytes = random() % 400;
        bytes = random() % 3 == 0 ? random() % 120 : 0;
      }
      auto packed = pack(entries);
      for (uint64_t flips = random() % 3; flips > 0 && !packed.empty(); --flips) {
        packed[random() % packed.size()] ^= static_cast<uint8_t>(1 << random() % 8);
      }
      say_batch(packed);
    }
    expect_untouched();
  }
}

}  // namespace
}  // namespace offpath::testing
