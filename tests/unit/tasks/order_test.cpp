// SPDX-License-Identifier: BSD-3-Clause
// Orders of tasks against a plain reference that looks at everything.
#include "tasks/order.hpp"
#include "tasks/record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace offpath::tasks {
namespace {

using Verdict = Order::Verdict;

std::vector<uint32_t> slots_of(const std::vector<Order::Decided>& decided, bool may_begin) {
  std::vector<uint32_t> out;
  for (const auto& one : decided) {
    if (one.may_begin == may_begin) out.push_back(one.slot);
  }
  return out;
}

TEST(Order, WaitsAndFailures) {
  Order order(8);
  std::vector<Order::Decided> decided;
  order.begin_other(0);
  EXPECT_EQ(order.begin(1, std::vector<uint32_t>{0}, {}).verdict, Verdict::waits);
  EXPECT_EQ(order.begin(2, std::vector<uint32_t>{0, 1, 0}, {}).verdict, Verdict::waits);
  EXPECT_EQ(order.begin(3, std::vector<uint32_t>{kEndedWell}, {}).verdict, Verdict::ready);
  EXPECT_EQ(order.begin(4, std::vector<uint32_t>{kEndedBadly, 0}, {}).verdict, Verdict::fails);
  EXPECT_EQ(order.begin(5, std::vector<uint32_t>{5}, {}).verdict, Verdict::nonsense);
  EXPECT_EQ(order.begin(6, std::vector<uint32_t>{8}, {}).verdict, Verdict::nonsense);
  order.end(0, true, decided);
  EXPECT_EQ(slots_of(decided, true), (std::vector<uint32_t>{1}));
  decided.clear();
  order.end(1, false, decided);
  EXPECT_EQ(slots_of(decided, false), (std::vector<uint32_t>{2}));
  // Slots that were used again are other operations.
  order.end(1, true, decided);
  order.end(2, false, decided);
  EXPECT_EQ(order.begin(1, std::vector<uint32_t>{2}, {}).verdict, Verdict::fails);
  EXPECT_EQ(order.begin(2, std::vector<uint32_t>{0}, {}).verdict, Verdict::ready);
}

TEST(Order, OneThatFailedEarlyIsNotDecidedAgain) {
  Order order(8);
  std::vector<Order::Decided> decided;
  order.begin_other(0);
  order.begin_other(1);
  EXPECT_EQ(order.begin(2, std::vector<uint32_t>{0, 1}, {}).verdict, Verdict::waits);
  order.end(0, false, decided);
  EXPECT_EQ(slots_of(decided, false), (std::vector<uint32_t>{2}));
  decided.clear();
  order.end(2, false, decided);
  EXPECT_EQ(order.begin(2, std::vector<uint32_t>{3, 1}, {}).verdict, Verdict::waits);  // another task in its slot
  order.end(1, true, decided);
  EXPECT_EQ(slots_of(decided, true), (std::vector<uint32_t>{2}));
  EXPECT_EQ(decided.size(), 1U);
}

struct Plain {
  bool under_way = false;
  std::vector<Order::Range> ranges;
  std::set<uint32_t> before;  // all tasks under way that it comes after
};

bool conflict(const Order::Range& a, const Order::Range& b) {
  return (a.writes || b.writes) && a.bytes > 0 && b.bytes > 0 && a.address < b.address + b.bytes &&
         b.address < a.address + a.bytes;
}

TEST(Order, OverlapsAsAPlainReferenceFindsThem) {
  constexpr uint32_t kSlots = 40;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Order order(kSlots);
    std::vector<Plain> plain(kSlots);
    std::vector<Order::Decided> decided;
    for (int step = 0; step < 3000; ++step) {
      const uint32_t slot = random() % kSlots;
      Plain& here = plain[slot];
      if (here.under_way && !here.before.empty()) continue;  // it cannot have run yet
      if (here.under_way) {
        order.end(slot, true, decided);
        here = {};
        for (Plain& other : plain) other.before.erase(slot);
        continue;
      }
      std::vector<uint32_t> after;
      std::set<uint32_t> before;
      for (uint32_t i = random() % 4; i > 0; --i) {
        const uint32_t name = random() % kSlots;
        if (name == slot) continue;
        after.push_back(name);
        if (!plain[name].under_way) continue;
        before.insert(name);
        before.insert(plain[name].before.begin(), plain[name].before.end());
      }
      std::vector<Order::Range> ranges;
      for (uint32_t i = random() % 3; i > 0; --i) ranges.push_back({random() % 300, random() % 20, random() % 2 == 0});
      std::set<uint32_t> in_the_way;
      for (uint32_t other = 0; other < kSlots; ++other) {
        if (!plain[other].under_way || before.contains(other)) continue;
        for (const auto& a : ranges) {
          for (const auto& b : plain[other].ranges) {
            if (conflict(a, b)) in_the_way.insert(other);
          }
        }
      }
      const Order::Begun begun = order.begin(slot, after, ranges);
      ASSERT_EQ(begun.verdict == Verdict::overlaps, !in_the_way.empty()) << "seed " << seed << " step " << step;
      if (begun.verdict == Verdict::overlaps) {
        EXPECT_TRUE(in_the_way.contains(begun.other));
        order.end(slot, true, decided);
      } else {
        here = {true, ranges, before};
      }
    }
  }
}

}  // namespace
}  // namespace offpath::tasks
