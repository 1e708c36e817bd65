// SPDX-License-Identifier: BSD-3-Clause
// The parts of a task one by one: numbers of chunks, bitmaps and their gaps, chains, and who may ask what when.
#include "multicast/task.hpp"

#include <gtest/gtest.h>

#include <random>

namespace offpath::multicast {
namespace {

using Wish = Fetch::Wish::Kind;

Shape shape_of(std::vector<uint64_t> parts, uint32_t chunk = 100) { return *Shape::make(std::move(parts), chunk); }

TEST(Shape, NumbersRunThroughAllParts) {
  const Shape shape = shape_of({250, 0, 100, 1});
  EXPECT_EQ(shape.chunks(), 5u);
  EXPECT_EQ(shape.part(0), (Chunks{0, 3}));
  EXPECT_EQ(shape.part(1), (Chunks{3, 0}));
  EXPECT_EQ(shape.part(2), (Chunks{3, 1}));
  const uint32_t owners[] = {0, 0, 0, 2, 3};
  for (uint32_t chunk = 0; chunk < 5; ++chunk) EXPECT_EQ(shape.owner(chunk), owners[chunk]);
  EXPECT_EQ(shape.offset(0, 2), 200u);
  EXPECT_EQ(shape.bytes(0, {2, 1}), 50u);
  EXPECT_EQ(shape.bytes(0, {0, 3}), 250u);
  EXPECT_EQ(shape.bytes(3, {4, 1}), 1u);
}

TEST(Shape, RefusesWhatHasNoNumbers) {
  EXPECT_FALSE(Shape::make({}, 100));
  EXPECT_FALSE(Shape::make({1}, 0));
  EXPECT_FALSE(Shape::make({uint64_t{1} << 32}, 1));
  EXPECT_FALSE(Shape::make({UINT64_MAX, UINT64_MAX}, 1));
  EXPECT_TRUE(Shape::make({uint64_t{1} << 40}, 1400));
}

TEST(Arrivals, FindsGapsOverWords) {
  Arrivals arrivals(shape_of({20000, 30000}), 1);
  EXPECT_TRUE(arrivals.has(1));
  EXPECT_EQ(arrivals.gap(0, 0, 1000), (Chunks{0, 200}));
  EXPECT_EQ(arrivals.gap(0, 0, 7), (Chunks{0, 7}));
  arrivals.note({3, 150});
  EXPECT_EQ(arrivals.gap(0, 0, 1000), (Chunks{0, 3}));
  EXPECT_EQ(arrivals.gap(0, 3, 1000), (Chunks{153, 47}));
  arrivals.note({0, 3});
  arrivals.note({3, 10});  // known ones count once
  EXPECT_EQ(arrivals.missing(0), 47u);
  EXPECT_EQ(arrivals.look(5), Arrival::known);
  EXPECT_EQ(arrivals.look(160), Arrival::fresh);
  EXPECT_EQ(arrivals.look(500), Arrival::foreign);
  EXPECT_EQ(arrivals.look(UINT32_MAX), Arrival::foreign);
  EXPECT_FALSE(arrivals.complete());
  arrivals.note({153, 47});
  EXPECT_TRUE(arrivals.complete());
  EXPECT_EQ(arrivals.gap(0, 0, 1000).count, 0u);
}

TEST(Chains, HaveEqualLengthsAndOnlySenders) {
  const Shape shape = shape_of({1, 0, 1, 1, 0, 1});  // 0, 2 | 3, 5
  const Chains two(shape, 2);
  EXPECT_EQ(two.count(), 2u);
  EXPECT_TRUE(two.begins(0) && two.begins(3));
  EXPECT_FALSE(two.begins(2) || two.begins(1) || two.sends(4));
  EXPECT_EQ(two.next(0), 2u);
  EXPECT_FALSE(two.next(2));
  EXPECT_EQ(two.next(3), 5u);
  EXPECT_EQ(two.last_others(0), (std::vector<uint32_t>{2, 5}));
  EXPECT_EQ(two.last_others(5), (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(Chains(shape, 4).last_others(3), (std::vector<uint32_t>{0, 2, 5}));
  EXPECT_TRUE(Chains(shape_of({0, 5, 0}), 2).last_others(1).empty());
  const Chains three(shape, 3);  // 4 senders
  EXPECT_EQ(three.count(), 1u);
  EXPECT_EQ(three.next(2), 3u);
  EXPECT_EQ(Chains(shape_of({0, 5, 0}), 2).count(), 1u);
  EXPECT_EQ(Chains(shape_of({0, 0}), 2).count(), 0u);
}

TEST(Chains, AreAllSendersIfTheyAreFew) {
  EXPECT_EQ(Chains(shape_of({1, 0, 1, 1}), 0).count(), 3u);
  EXPECT_EQ(Chains(shape_of(std::vector<uint64_t>(16, 5)), 0).count(), 16u);
  EXPECT_EQ(Chains(shape_of(std::vector<uint64_t>(18, 5)), 0).count(), 2u);
  EXPECT_EQ(Chains(shape_of({0, 5, 0}), 0).count(), 1u);
  EXPECT_EQ(Chains(shape_of({0, 0}), 0).count(), 0u);
}

// Links are shared by those who are heard, and nobody hears himself.
TEST(Chains, SayHowManyAreHeard) {
  EXPECT_EQ(Chains(shape_of({1, 1, 1, 1}), 4).heard(), 3u);
  EXPECT_EQ(Chains(shape_of({1, 1}), 2).heard(), 1u);
  EXPECT_EQ(Chains(shape_of({1, 1, 1, 1}), 2).heard(), 2u);
  EXPECT_EQ(Chains(shape_of({1, 1, 0}), 2).heard(), 2u);
  EXPECT_EQ(Chains(shape_of({0, 5, 0}), 0).heard(), 1u);
  EXPECT_EQ(Chains(shape_of({0, 0}), 0).heard(), 1u);
}

TEST(Fetch, AsksTheNearestOwnersFirstAndOnlyForGaps) {
  Arrivals arrivals(shape_of({500, 500, 500}), 0);
  arrivals.note({10, 2});  // of node 2
  Fetch fetch(0, {.run = 2, .pulls = 2});
  EXPECT_EQ(fetch.next(arrivals).kind, Wish::none);  // more may come
  fetch.begin();
  Fetch::Wish wish = fetch.next(arrivals);
  EXPECT_EQ(wish.kind, Wish::need);
  EXPECT_EQ(wish.part, 2u);
  EXPECT_EQ(fetch.next(arrivals).kind, Wish::none);
  EXPECT_FALSE(fetch.ready(arrivals, 1));
  EXPECT_FALSE(fetch.ready(arrivals, 3));
  EXPECT_FALSE(fetch.fetched());
  EXPECT_TRUE(fetch.ready(arrivals, 2));
  EXPECT_FALSE(fetch.ready(arrivals, 2));
  EXPECT_EQ(fetch.next(arrivals).run, (Chunks{12, 2}));
  EXPECT_EQ(fetch.next(arrivals).run, (Chunks{14, 1}));
  EXPECT_EQ(fetch.next(arrivals).kind, Wish::none);
  arrivals.note({12, 2});
  EXPECT_TRUE(fetch.fetched());
  EXPECT_EQ(fetch.next(arrivals).kind, Wish::none);
  arrivals.note({14, 1});
  EXPECT_TRUE(fetch.fetched());
  wish = fetch.next(arrivals);
  EXPECT_EQ(wish.kind, Wish::need);
  EXPECT_EQ(wish.part, 1u);
  arrivals.note({5, 5});                            // came late by multicast
  EXPECT_EQ(fetch.next(arrivals).kind, Wish::fin);  // without waiting for what is here
  EXPECT_TRUE(fetch.finished());
  EXPECT_TRUE(fetch.ready(arrivals, 1));  // was on its way
  EXPECT_EQ(fetch.next(arrivals).kind, Wish::none);
}

TEST(Serve, AnswersTheLastQuestionOnceThatPartIsComplete) {
  Arrivals arrivals(shape_of({500, 500}), 0);
  Serve serve;
  EXPECT_FALSE(serve.need(arrivals, 2));
  EXPECT_TRUE(serve.need(arrivals, 1));
  EXPECT_FALSE(serve.take_ready(arrivals));
  EXPECT_TRUE(serve.need(arrivals, 0));
  EXPECT_EQ(serve.take_ready(arrivals), 0u);
  EXPECT_TRUE(serve.need(arrivals, 1));
  EXPECT_FALSE(serve.may_pull(arrivals, 1, {5, 1}));
  arrivals.note({5, 5});
  EXPECT_EQ(serve.take_ready(arrivals), 1u);
  EXPECT_FALSE(serve.take_ready(arrivals));
  EXPECT_TRUE(serve.may_pull(arrivals, 1, {5, 5}));
  EXPECT_FALSE(serve.may_pull(arrivals, 1, {5, 6}));
  EXPECT_FALSE(serve.may_pull(arrivals, 1, {4, 2}));
  EXPECT_FALSE(serve.may_pull(arrivals, 1, {9, UINT32_MAX}));
  EXPECT_FALSE(serve.may_pull(arrivals, 1, {5, 0}));
  EXPECT_FALSE(serve.may_pull(arrivals, 0, {0, 1}));
  EXPECT_TRUE(serve.need(arrivals, 1));
  EXPECT_TRUE(serve.fin());
  EXPECT_FALSE(serve.take_ready(arrivals));
  EXPECT_FALSE(serve.fin());
  EXPECT_FALSE(serve.need(arrivals, 1));
}

TEST(Task, BelievesOnlyItsNeighboursAndItsTurn) {
  Task task(shape_of({100, 100, 100, 100}), 1, {.chains = 2});  // 0, 1 | 2, 3
  EXPECT_FALSE(task.token(2));
  EXPECT_FALSE(task.need(0, 1));
  EXPECT_FALSE(task.ready(0, 0));  // nothing was asked
  EXPECT_FALSE(task.fin(3));
  EXPECT_FALSE(task.fetched({0, 1}));
  EXPECT_TRUE(task.token(0));  // before the word that all are armed
  EXPECT_EQ(task.next()->kind, Act::Kind::send);
  EXPECT_FALSE(task.token(0));
  task.go(true);
  EXPECT_FALSE(task.next());
  task.sent();
  EXPECT_FALSE(task.next());  // the end of its chain
  EXPECT_TRUE(task.need(2, 1));
  EXPECT_EQ(task.next()->kind, Act::Kind::ready);
}

// The token of the one before overtakes his datagrams; so do those of the other chain.
TEST(Task, DoesNotTakeItsOwnEndForThatOfItsChain) {
  Task task(shape_of({200, 200, 200, 200}), 3, {.chains = 2});  // 0, 1 | 2, 3
  task.go(true);
  EXPECT_TRUE(task.token(2));
  EXPECT_EQ(task.next()->kind, Act::Kind::send);
  task.sent();
  for (const uint32_t chunk : {0u, 1u, 2u, 3u}) task.note(chunk);
  EXPECT_FALSE(task.next());  // what 2 sent may still come
  task.note(5);
  EXPECT_EQ(task.next()->kind, Act::Kind::need);
}

// Others may say what they like, in any order: it gives nothing away that it does not have, and asks for nothing that it has.
TEST(Task, StaysSoundWhateverItIsTold) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
    Task task(shape_of({350, 0, 100, 420, 50}), draw(5), {.chains = 1 + draw(2), .fetch = {.run = 2, .pulls = 2}});
    std::vector<Chunks> pulls;
    for (uint32_t i = 0; i < 300; ++i) {
      const uint32_t from = draw(7), part = draw(7), chunk = draw(20);
      switch (draw(9)) {
        case 0:
          task.go(draw(8) != 0);
          break;
        case 1:
          task.token(from);
          break;
        case 2:
          task.need(from, part);
          break;
        case 3:
          task.ready(from, part);
          break;
        case 4:
          draw(10) == 0 && task.fin(from);
          break;
        case 5:
          draw(10) == 0 ? task.quiet() : task.sent();
          break;
        case 6:
          if (task.look(chunk) == Arrival::fresh) task.note(chunk);
          break;
        case 7:
          if (pulls.empty()) break;
          EXPECT_TRUE(task.fetched(pulls.back()));
          pulls.pop_back();
          break;
        default:
          const Chunks run{chunk, draw(4)};
          if (!task.may_pull(from, part, run)) break;
          for (uint32_t here = chunk; here < chunk + run.count; ++here) {
            EXPECT_EQ(task.arrivals().look(here), Arrival::known);
          }
      }
      while (const auto act = task.next()) {
        if (act->kind != Act::Kind::pull) continue;
        EXPECT_EQ(task.arrivals().look(act->run.first), Arrival::fresh);
        pulls.push_back(act->run);
      }
      EXPECT_TRUE(!task.done() || task.complete());
    }
  }
}

TEST(Task, ForOneNodeIsOverAtOnce) {
  Task task(shape_of({100}), 0, {});
  task.go(true);
  EXPECT_FALSE(task.next());
  EXPECT_TRUE(task.done());
}

}  // namespace
}  // namespace offpath::multicast
