// SPDX-License-Identifier: BSD-3-Clause
// Words of arrivals that cannot be, and when they are said.
#include "hostile.hpp"

#include <algorithm>

namespace offpath::testing {
namespace {

using graph::Ends;

// Members 1 and 2 live at the raw endpoint: one worker, for which 1 speaks.
class HostileArrivals : public Hostile {
 protected:
  HostileArrivals() {
    engine::TeamSpec spec;
    spec.id.bytes[0] = 2;
    spec.client = kClient;
    spec.members = {{true, 0, {}}, {false, 0, raw->address()}, {false, 0, raw->address()}};
    handle = honest->add_team(std::move(spec)).value();
  }
  void word(uint64_t number, uint32_t from, uint32_t tag, uint32_t to = 0, uint8_t id = 2, uint32_t count = 1) {
    Message message = about(Kind::arrived, number, from, to);
    message.team.bytes[0] = id;
    message.tag = tag;
    message.count = count;
    message.bytes = message.pull_id = 0;
    say(message);
    settle();
  }
  void post_ends(uint64_t number, Ends ends) {
    graph::Graph graph;
    if (ends == Ends::by_pairs) graph.offer(1, 0, at(source), 0);
    graph.ends = ends;
    honest->post(handle, number, std::move(graph), number);
    settle();
  }
  void on_arrived(engine::ClientId, uint64_t operation) override { words_before[operation] = words(operation); }
  size_t words(uint64_t number) const {
    return static_cast<size_t>(std::count_if(heard.begin(), heard.end(), [&](const Message& message) {
      return message.kind == Kind::arrived && message.number == number;
    }));
  }
  std::map<uint64_t, size_t> words_before;
  static constexpr uint32_t kTogether = 1, kByPairs = 2;
  engine::TeamHandle handle = 0;
};

TEST_F(HostileArrivals, WordsThatCannotBeChangeNothing) {
  post_ends(5, Ends::together);
  const uint64_t before = honest->refused_count();
  for (const uint32_t tag : {0U, 3U, UINT32_MAX}) word(5, 1, tag);
  EXPECT_EQ(honest->refused_count() - before, 3U);
  for (const uint32_t from : {0U, 2U, 3U, UINT32_MAX}) word(5, from, kTogether);  // one of here, no speaker, nobody
  EXPECT_EQ(honest->refused_count() - before, 7U);
  for (const uint64_t number : {wire::kNoOperation, UINT64_MAX}) word(number, 1, kTogether);
  EXPECT_EQ(honest->refused_count() - before, 9U);
  for (const uint32_t to : {1U, 2U, 77U, UINT32_MAX}) word(5, 1, kTogether, to);  // those are not here
  EXPECT_EQ(honest->refused_count() - before, 13U);
  for (const uint32_t count : {0U, 2U, 3U, UINT32_MAX}) word(5, 1, kTogether, 0, 2, count);  // of nobody, of us, too
  EXPECT_EQ(honest->refused_count() - before, 17U);
  for (const uint32_t from : {1U, 2U, 99U, UINT32_MAX}) word(5, from, kByPairs);
  word(wire::kNoOperation, 1, kByPairs);
  for (const uint32_t tag : {kTogether, kByPairs})
    word(5, 1, tag, 0, 9), word(5, 1, tag, UINT32_MAX, 9);  // no such team
  EXPECT_FALSE(outcome.contains(5));
  word(5, 1, kTogether);
  EXPECT_EQ(outcome[5], OFFPATH_OK);
  expect_untouched();
}

TEST_F(HostileArrivals, ByPairsOnlyWhoTakesABlockCounts) {
  post_ends(5, Ends::by_pairs);
  Message taken = about(Kind::pull, 5, 0, 1);
  taken.team.bytes[0] = 2;
  say(taken);
  settle();
  for (const uint32_t from : {0U, 2U, 3U, UINT32_MAX}) word(5, from, kByPairs);
  word(5, 1, kTogether), word(6, 1, kByPairs);
  EXPECT_FALSE(outcome.contains(5));
  word(5, 1, kByPairs);
  EXPECT_EQ(outcome[5], OFFPATH_OK);
  for (int i = 0; i < 3; ++i) word(5, 1, kByPairs);
  expect_untouched();
}

// What is over is not remembered again, and of what is to come there is a limit.
TEST_F(HostileArrivals, TheyDoNotFillTheMemory) {
  for (uint64_t number = 0; number < 300; ++number) {
    post_ends(number, Ends::together);
    word(number, 1, kTogether);
    ASSERT_EQ(outcome[number], OFFPATH_OK);
    word(number, 1, kTogether);
  }
  EXPECT_EQ(honest->refused_count(), 0U);
  for (uint64_t number = 1000; number < 1300; ++number) word(number, 1, kTogether);
  EXPECT_EQ(honest->refused_count(), 200U);
  post_ends(2000, Ends::together);
  word(2000, 1, kTogether);
  EXPECT_EQ(outcome[2000], OFFPATH_OK) << "those that are awaited are heard all the same";
  expect_untouched();
}

// The client knows of its result before anybody else does: its service may die in between.
TEST_F(HostileArrivals, TheClientIsToldFirst) {
  engine::TeamSpec spec;
  spec.id.bytes[0] = 3;
  spec.client = kClient;
  spec.members = {{true, 0, {}}, {true, 1, {}}};
  handle = honest->add_team(std::move(spec)).value();
  for (const Ends ends : {Ends::together, Ends::by_pairs}) {
    const auto number = static_cast<uint64_t>(ends);
    graph::Graph graph;
    if (ends == Ends::by_pairs) graph.pull(1, 0, at(target), 0);
    graph.ends = ends;
    honest->post(handle, number, std::move(graph), number);
    for (const Message& asked : std::vector<Message>(heard)) {
      if (asked.kind == Kind::pull && asked.number == number) honest->on_neighbour_offer(asked.pull_id, nullptr, 0, 0);
    }
    settle();
    EXPECT_EQ(words_before.at(number), 0U);
    EXPECT_EQ(words(number), 1U);
  }
}

}  // namespace
}  // namespace offpath::testing
