// SPDX-License-Identifier: BSD-3-Clause
// Connections that break between endpoints that live: both lose the peer, and reach it again as another one.
#include "pair.hpp"
#include "proxy.hpp"

#include <random>

namespace offpath::fabric::tcp {
namespace {

class TcpBroken : public ::testing::Test {
 protected:
  static Options patient() {
    Options options = quick();
    options.tick_ms = 30;
    return options;
  }
  TcpBroken() : a(patient()), b(patient()), at_b(b->address(), {}), at_a(a->address(), {}) {}
  bool until(const std::function<bool()>& done) {
    return run_until(done, [&] { step(); });
  }
  void step() { a->progress(), b->progress(), at_a.step(), at_b.step(); }
  void find_each_other() {
    to_b = a->connect(at_b.address()).value();
    to_a = b->connect(at_a.address()).value();
  }
  void break_all(bool far_too = true) { at_a.break_all(far_too), at_b.break_all(far_too); }
  void meet() {
    find_each_other();
    expect_both_hear(to_b, to_a);
  }
  void expect_both_hear(Peer of_a, Peer of_b) {
    a.hears->messages.clear(), b.hears->messages.clear(), a.hears->sent.clear(), b.hears->sent.clear();
    const Exchange exchange;
    exchange.say(*a.endpoint, of_a), exchange.say(*b.endpoint, of_b);
    ASSERT_TRUE(until([&] { return Exchange::all_heard(*a.hears) && Exchange::all_heard(*b.hears); }));
    Exchange::expect_genuine(*a.hears, true);
    Exchange::expect_genuine(*b.hears, true);
    EXPECT_TRUE(until([&] { return Exchange::all_sent(*a.hears) && Exchange::all_sent(*b.hears); }));
  }

  Side a, b;
  Proxy at_b, at_a;  // whoever connects goes through one
  Peer to_b = 0, to_a = 0;
};

TEST_F(TcpBroken, BothReachEachOtherAgain) {
  meet();
  for (size_t losses = 1; losses < 20; ++losses) {
    break_all();
    ASSERT_TRUE(until([&] { return a.hears->lost.size() == losses && b.hears->lost.size() == losses; }));
    EXPECT_EQ(a.hears->lost.back(), to_b);
    EXPECT_EQ(b.hears->lost.back(), to_a);
    const Peer before_b = to_b, before_a = to_a;
    find_each_other();
    EXPECT_NE(before_b, to_b);
    EXPECT_NE(before_a, to_a);
    expect_both_hear(to_b, to_a);
  }
}

TEST_F(TcpBroken, WhoSawNothingOfItHearsOfItToo) {
  meet();
  break_all(false);
  ASSERT_TRUE(until([&] { return !a.hears->lost.empty() && !b.hears->lost.empty(); }));
  EXPECT_EQ(a.hears->lost, std::vector<Peer>{to_b});
  EXPECT_EQ(b.hears->lost, std::vector<Peer>{to_a});
  find_each_other();
  expect_both_hear(to_b, to_a);
}

// While both begin, say something, or have not noticed yet.
TEST_F(TcpBroken, AtAnyMomentBothAgreeInTheEnd) {
  std::mt19937 random(7);
  meet();
  for (int round = 0; round < 150; ++round) {
    break_all(random() % 2 == 0);
    for (uint32_t steps = random() % 30; steps > 0; --steps) {
      if (random() % 3 == 0) at_a.step(), at_b.step();
      if (random() % 5 == 0) a->send(a->connect(at_b.address()).value(), Data{9}, {}, 0);
      if (random() % 5 == 0) b->send(b->connect(at_a.address()).value(), Data{9}, {}, 0);
      (random() % 2 == 0 ? a : b)->progress();
    }
    if (round % 30 != 29) continue;
    const auto rests = [&] {
      find_each_other();
      const auto is_lost = [](Side& side, Peer peer) {
        return std::count(side.hears->lost.begin(), side.hears->lost.end(), peer) != 0;
      };
      return !is_lost(a, to_b) && !is_lost(b, to_a) && !a->is_connecting() && !b->is_connecting();
    };
    ASSERT_TRUE(until(rests)) << round;
    for (int i = 0; i < 300; ++i) step();
    ASSERT_TRUE(until(rests)) << round;
    expect_both_hear(to_b, to_a);
    if (HasFailure()) FAIL() << round;
  }
}

// What breaks connections breaks the first attempt, too. No tick passes in this test.
TEST(TcpBrokenTwice, TheSecondAttemptWaitsForNothing) {
  Options patient = quick();
  patient.tick_ms = 3'600'000;
  Side a(patient), b(patient);
  Proxy at_b(b->address(), {});
  const auto step = [&] { a->progress(), b->progress(), at_b.step(); };
  const Peer to_b = a->connect(at_b.address()).value();
  a->send(to_b, Data{1}, {}, 0);
  ASSERT_TRUE(run_until([&] { return b.hears->messages.size() == 1; }, step));
  at_b.break_all();
  const size_t said = at_b.passed(false);
  ASSERT_TRUE(run_until([&] { return at_b.passed(false) > said; }, step));  // a has begun to greet
  at_b.break_all();
  const Peer again = a->connect(at_b.address()).value();
  ASSERT_NE(again, to_b);
  a->send(again, Data{2}, {}, 0);
  EXPECT_TRUE(run_until([&] { return b.hears->messages.size() == 2; }, step));
  EXPECT_EQ(a.hears->lost, std::vector<Peer>{to_b});
}

// Nobody listens there any more. No tick passes in this test.
TEST(TcpEnded, WhoHasDiedIsNotTriedForLong) {
  Options patient = quick();
  patient.tick_ms = 3'600'000;
  Side a(patient);
  auto b = std::make_unique<Side>(patient);
  const std::vector<uint8_t> address = (*b)->address();
  const Peer to_b = a->connect(address).value();
  a->send(to_b, Data{1}, {}, 0);
  ASSERT_TRUE(run_until([&] { return !b->hears->messages.empty(); }, [&] { a->progress(), (*b)->progress(); }));
  b.reset();
  ASSERT_TRUE(run_until([&] { return !a.hears->lost.empty(); }, [&] { a->progress(); }));
  const Peer again = a->connect(address).value();
  ASSERT_NE(again, to_b);
  a->send(again, Data{2}, {}, 0);
  EXPECT_TRUE(run_until([&] { return a.hears->lost == std::vector<Peer>{to_b, again}; }, [&] { a->progress(); }));
}

TEST_F(TcpBroken, WhoWasGivenUpIsNotLetInAgain) {
  meet();
  a->give_up(to_b);
  ASSERT_TRUE(until([&] { return !b.hears->lost.empty(); }));
  const Peer again = b->connect(at_a.address()).value();
  b->send(again, Data{1}, {}, 0);
  EXPECT_TRUE(until([&] { return b.hears->lost == std::vector<Peer>{to_a, again}; }));
  EXPECT_EQ(a->connect(at_b.address()).value(), to_b);
  EXPECT_EQ(a.hears->lost, std::vector<Peer>{to_b});
}

}  // namespace
}  // namespace offpath::fabric::tcp
