// SPDX-License-Identifier: BSD-3-Clause
// The policy in virtual time: workers with random loads that ask, grant and give as the balancer does. Whatever they are: each task
// is run once, moves once at most, nobody is given more than it has room for, and all end about when they could.
#include "tasks/balance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <random>

namespace offpath::tasks {
namespace {

struct Worker {
  uint32_t executors = 1;
  uint64_t cost_ns = 0;                // of a task here
  uint32_t own = 0;                    // tasks of its own that are ready
  uint32_t guests = 0;                 // of others, that are ready
  std::vector<uint64_t> busy_until{};  // executors that run, and whose
  uint32_t promised = 0;
  uint32_t moved = 0, taken = 0, run = 0;
  std::vector<std::pair<uint64_t, uint32_t>> arriving{};  // time, promised before

  Load load() const {
    return {executors,     static_cast<uint32_t>(busy_until.size()), own,
            own * cost_ns, busy_until.size() * cost_ns / 2,          400000};
  }
};

struct World {
  static constexpr uint64_t kTick = 100000, kTrip = 400000;
  std::vector<Worker> workers;
  uint64_t now = 0;

  bool over() const {
    return std::all_of(workers.begin(), workers.end(), [](const Worker& w) {
      return w.own + w.guests == 0 && w.busy_until.empty() && w.arriving.empty();
    });
  }

  void run_executors() {
    for (Worker& w : workers) {
      w.run += static_cast<uint32_t>(std::erase_if(w.busy_until, [&](uint64_t end) { return end <= now; }));
      std::erase_if(w.arriving, [&](const auto& one) {
        if (one.first > now) return false;
        ++w.guests;
        --w.promised;
        return true;
      });
      while (w.busy_until.size() < w.executors && w.own + w.guests > 0) {
        --(w.own > 0 ? w.own : w.guests);
        w.busy_until.push_back(now + w.cost_ns);
      }
    }
  }

  void balance() {
    const auto count = static_cast<uint32_t>(workers.size());
    for (uint32_t taker = 0; taker < count; ++taker) {
      Worker& to = workers[taker];
      std::vector<Load> asking;
      std::vector<uint32_t> who;
      for (uint32_t giver = 0; giver < count; ++giver) {
        const auto near = neighbours(giver, count);
        if (std::find(near.begin(), near.end(), taker) == near.end() || !is_worth_asking(workers[giver].load()))
          continue;
        asking.push_back(workers[giver].load());
        who.push_back(giver);
      }
      const auto chosen = choose(asking);
      if (!chosen) continue;
      const uint32_t room = room_for_guests(to.load(), to.guests, to.promised, asking[*chosen]);
      Worker& from = workers[who[*chosen]];
      const uint64_t wait_ns = wait_for_executor_ns(to.load(), to.guests * to.cost_ns);
      const uint32_t granted = share(from.load(), to.load(), wait_ns, room);
      for (uint32_t i = 0; i < granted && is_sooner_there(from.load(), to.cost_ns + kTrip); ++i) {
        --from.own;
        ++from.moved;
        ++to.taken;
        ++to.promised;
        to.arriving.emplace_back(now + kTrip, 1);
      }
      ASSERT_LE(to.guests + to.promised + to.busy_until.size(), 9 * to.executors);
    }
  }

  uint64_t finish() {
    while (!over() && now < 1000 * uint64_t{1000000000}) {
      run_executors();
      balance();
      run_executors();
      now += kTick;
    }
    return now;
  }
};

TEST(Balance, RandomLoadsEndAboutTogether) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    World world;
    const uint32_t count = 2 + random() % 9;
    uint64_t total = 0;
    double rate = 0, longest_alone = 0;
    uint64_t dearest = 0;
    for (uint32_t i = 0; i < count; ++i) {
      Worker w;
      w.executors = 1 + random() % 3;
      w.cost_ns = 2000000 * (1 + random() % 3);
      w.own = random() % 3 == 0 ? 0 : random() % 100;
      total += w.own;
      rate += static_cast<double>(w.executors) / static_cast<double>(w.cost_ns);
      longest_alone =
          std::max(longest_alone, static_cast<double>(w.own) * static_cast<double>(w.cost_ns) / w.executors);
      dearest = std::max(dearest, w.cost_ns);
      world.workers.push_back(w);
    }
    const auto end = static_cast<double>(world.finish());
    uint32_t run = 0, moved = 0, taken = 0;
    for (const Worker& w : world.workers) run += w.run, moved += w.moved, taken += w.taken;
    ASSERT_EQ(run, total) << round;
    ASSERT_EQ(moved, taken);
    ASSERT_LE(moved, total);
    // No worse than without, and near what all together could do, but for the tasks that are begun last.
    const double slack = 2.0 * static_cast<double>(dearest) + 3e6;
    ASSERT_LE(end, longest_alone + slack) << round;
    if (count <= 4) {  // all are neighbours
      ASSERT_LE(end, static_cast<double>(total) / rate * 1.15 + slack) << round;
    }
  }
}

TEST(Balance, NothingMovesWhereAllIsEven) {
  World world;
  for (int i = 0; i < 4; ++i) world.workers.push_back({.executors = 2, .cost_ns = 5000000, .own = 40});
  world.finish();
  for (const Worker& w : world.workers) EXPECT_EQ(w.moved, 0U);
}

TEST(Balance, WhoHasMoreThanItRunsTakesNothing) {
  const Load near{2, 2, 9, 9000000, 0, 400000}, far{2, 2, 9, 9000000, 0, 3500000},
      endless{2, 2, 9, 9, 0, UINT64_MAX / 2};
  EXPECT_EQ(room_for_guests({4, 4, 1, 1000000}, 0, 0, near), 0U);
  EXPECT_EQ(room_for_guests({4, 4, 1, 1000}, 0, 0, near), 3U);  // begun before a guest could come
  EXPECT_EQ(room_for_guests({4, 4, 0, 0}, 0, 0, near), 4U);
  EXPECT_EQ(room_for_guests({4, 4, 0, 0}, 0, 0, far), 16U);
  EXPECT_EQ(room_for_guests({4, 4, 0, 0}, 0, 0, endless), 32U);
  EXPECT_EQ(room_for_guests({4, 2, 0, 0}, 1, 2, near), 3U);
  EXPECT_EQ(room_for_guests({4, 4, 0, 0}, 3, 9, near), 0U);
  EXPECT_EQ(room_for_guests({}, 0, 0, near), 0U);
  EXPECT_FALSE(is_worth_asking({2, 1, 9, 900000000}));  // an executor is about to take one
  EXPECT_FALSE(is_worth_asking({2, 2, 0, 0, 900000000}));
  EXPECT_TRUE(is_worth_asking({2, 2, 9, 900000000}));
  EXPECT_FALSE(is_worth_asking({2, 2, 9, 900000000, 0, 500000000}));
}

TEST(Balance, WhenOneEndsElsewhere) {
  const Grant grant{4, 2, 1000};
  EXPECT_EQ(end_there_ns(grant, 0, 100, 5000), 6050U);
  EXPECT_EQ(end_there_ns(grant, 1, 100, 5000), 6050U);
  EXPECT_EQ(end_there_ns(grant, 2, 100, 5000), 11050U);
  EXPECT_EQ(end_there_ns(grant, 0, 9000, 5000), 14000U);  // its wait is over when it comes
  EXPECT_EQ(end_there_ns({1, 0, 0}, 0, 1, 1), 2U);        // of one that says nonsense
  EXPECT_TRUE(is_sooner_there({1, 1, 2, 10000, 5000}, 14999));
  EXPECT_FALSE(is_sooner_there({1, 1, 2, 10000, 5000}, 15000));
  EXPECT_FALSE(is_sooner_there({1, 1, 0, 0, 5000}, 1));
  EXPECT_EQ(wait_for_executor_ns({2, 1, 0, 0, 5000}, 9), 0U);
  EXPECT_EQ(wait_for_executor_ns({2, 2, 0, 0, 5000}, 3000), 4000U);
  EXPECT_EQ(wait_for_executor_ns({2, 2, 1, 2000, 5000}, 3000), 5000U);
}

TEST(Balance, BothEndAtTheSameTime) {
  const Load own{1, 0, 0, 0};
  EXPECT_EQ(share({1, 1, 8, 8000, 0, 0}, own, 0, 99), 4U);
  EXPECT_EQ(share({1, 1, 8, 24000, 0, 0, 1000}, own, 0, 99), 6U);  // three times as fast there
  EXPECT_EQ(share({1, 1, 8, 8000, 0, 0, 3000}, own, 0, 99), 2U);   // or as slow
  EXPECT_EQ(share({1, 1, 8, 8000, 0, 4000}, own, 0, 99), 2U);      // what is lost on the way
  EXPECT_EQ(share({1, 1, 8, 8000, 0, 4000}, own, 1000, 99), 2U);   // and waiting meanwhile costs nothing
  EXPECT_EQ(share({1, 1, 8, 8000, 0, 4000}, own, 4000, 99), 1U);
  EXPECT_EQ(share({1, 1, 8, 8000, 0, 0}, own, 0, 3), 3U);
  EXPECT_EQ(share({1, 1, 2, 8000, 800000, 0}, own, 0, 99), 2U);
  EXPECT_EQ(share({1, 1, 0, 0, 8000, 0}, own, 0, 99), 0U);
  EXPECT_EQ(share({1, 1, 8, 8000}, {}, 0, 99), 0U);
}

TEST(Balance, WhatWasSaidGrowsOld) {
  const Load load{2, 2, 10, 10000, 1000, 100};
  EXPECT_EQ(aged(load, 0), load);
  EXPECT_EQ(aged(load, 400), (Load{2, 2, 10, 10000, 200, 100}));
  EXPECT_EQ(aged(load, 1500), (Load{2, 2, 8, 8000, 0, 100}));
  EXPECT_EQ(aged(load, 5500), (Load{2, 2, 0, 0, 0, 100}));
  EXPECT_EQ(aged(load, UINT64_MAX), (Load{2, 2, 0, 0, 0, 100}));
  EXPECT_FALSE(is_worth_asking(aged(load, 5000)));
  EXPECT_TRUE(is_worth_asking(aged(load, 3000)));
  EXPECT_EQ(aged({1, 1, 5, 0, 0}, 100).ready, 0U);  // nothing is known of its tasks: asked again when it is
}

TEST(Balance, NeighboursReachEverybodyAndAreFew) {
  for (uint32_t count = 1; count < 70; ++count) {
    std::vector<bool> reached(count);
    std::deque<uint32_t> next{0};
    reached[0] = true;
    while (!next.empty()) {
      const uint32_t at = next.front();
      next.pop_front();
      const auto near = neighbours(at, count);
      EXPECT_LE(near.size(), 14U);
      for (const uint32_t one : near) {
        ASSERT_LT(one, count);
        ASSERT_NE(one, at);
        const auto back = neighbours(one, count);
        EXPECT_NE(std::find(back.begin(), back.end(), at), back.end());
        if (!reached[one]) next.push_back(one);
        reached[one] = true;
      }
    }
    EXPECT_EQ(std::count(reached.begin(), reached.end(), true), count);
  }
}

TEST(Balance, WhatIsExpectedIsBoundedWhateverIsSaid) {
  Mean lately;
  EXPECT_EQ(expected_cost_ns(lately, 0, 0), 0U);
  EXPECT_EQ(expected_cost_ns(lately, 700, 0), 700U);
  EXPECT_EQ(expected_cost_ns(lately, UINT64_MAX, 0), kMostCostNs);
  lately.add(500);
  EXPECT_EQ(expected_cost_ns(lately, 0, 3), 500U);
  EXPECT_EQ(expected_cost_ns(lately, 700, 0.5), 350U);
  EXPECT_EQ(expected_cost_ns(lately, 700, 0), 0U);
  EXPECT_EQ(expected_cost_ns(lately, UINT64_MAX, 1e300), kMostCostNs);
  EXPECT_EQ(expected_cost_ns(lately, UINT64_MAX, 1), kMostCostNs);
  EXPECT_EQ(expected_cost_ns(lately, 1, std::numeric_limits<double>::infinity()), kMostCostNs);
  EXPECT_EQ(expected_cost_ns(lately, 1, std::numeric_limits<double>::quiet_NaN()), 0U);
  EXPECT_EQ(expected_cost_ns(lately, 1, -1), 0U);
  Mean wrong;
  wrong.add(UINT64_MAX);  // as an executor may say
  EXPECT_EQ(expected_cost_ns(wrong, 0, 0), kMostCostNs);
}

TEST(Balance, LateOnesAreBegunAtHome) {
  const Away away{1000, 5000000, 4000000, 0};
  EXPECT_FALSE(is_overdue(away, 5000000, true));
  EXPECT_FALSE(is_overdue(away, 1000000000000, false));  // home has other things to do
  EXPECT_TRUE(is_overdue(away, next_look_ns(away), true));
  const Away urgent{1000, 5000000, 4000000, 20000000};
  EXPECT_FALSE(is_overdue(urgent, 15000000, false));
  EXPECT_TRUE(is_overdue(urgent, 16000000, false));
}

}  // namespace
}  // namespace offpath::tasks
