// SPDX-License-Identifier: BSD-3-Clause
// What every fabric must do, run over each of them.
#include "each_fabric.hpp"

#include "../../breaking.hpp"

#include <poll.h>

#include <algorithm>

// UCX keeps parts of an endpoint whose peer has gone with much under way.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions() { return "leak:libucs.so"; }

namespace offpath::fabric {
namespace {

TEST_P(FabricTest, HeaderOnlyArrivesAndIsCopied) {
  const Peer to_b = connect(*a, *b);
  for (size_t bytes = 1; bytes <= kMaxHeaderBytes; ++bytes) {
    Data header = pattern(bytes, 1);
    a->send(to_b, header, {}, 0);
    std::fill(header.begin(), header.end(), uint8_t{0});  // ours again at once
  }
  ASSERT_TRUE(until([&] { return at_b->messages.size() == kMaxHeaderBytes; }));
  for (size_t bytes = 1; bytes <= kMaxHeaderBytes; ++bytes)
    EXPECT_EQ(at_b->messages.count(pattern(bytes, 1)), 1U) << bytes;
  EXPECT_TRUE(at_a->sent.empty()) << "on_sent is for payloads only";
}

TEST_P(FabricTest, HeadersKeepTheirOrder) {
  const Peer to_b = connect(*a, *b);
  std::vector<uint8_t> order;
  at_b->then = [&] { order.push_back(at_b->messages.rbegin()->first[0]); };
  for (uint8_t i = 0; i < 200; ++i) a->send(to_b, Data{i}, {}, 0);
  ASSERT_TRUE(until([&] { return order.size() == 200; }));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(FabricTest, PayloadsOfAllSizesBothWays) {
  const Peer to_b = connect(*a, *b);
  const Peer to_a = connect(*b, *a);
  uint8_t seed = 0;
  for (size_t bytes = 1; bytes <= size_t{1} << 20; bytes = bytes * 3 + 1) {
    ++seed;
    const Data one = pattern(bytes, seed);
    const Data two = pattern(bytes, static_cast<uint8_t>(seed + 100));
    a->send(to_b, Data{seed}, one, seed, Of::user_data);
    b->send(to_a, Data{seed}, two, seed, Of::user_data);
    ASSERT_TRUE(until([&] {
      return at_b->messages.contains({seed}) && at_a->messages.contains({seed}) && at_a->sent.contains(seed) &&
             at_b->sent.contains(seed);
    })) << bytes;
    EXPECT_EQ(at_b->messages.find({seed})->second, one) << bytes;
    EXPECT_EQ(at_a->messages.find({seed})->second, two) << bytes;
    EXPECT_TRUE(at_a->sent[seed] && at_b->sent[seed]);
  }
}

TEST_P(FabricTest, ManyArriveOnceEachInAnyOrder) {
  const Peer to_b = connect(*a, *b);
  constexpr uint32_t kMany = 2000;
  const Data payload = pattern(300000, 5);
  const auto length = [](uint32_t i) { return i % 5 == 0 ? 0 : i % 97 == 0 ? 200000 + i : i % 4000; };
  for (uint32_t i = 0; i < kMany; ++i) {
    Data header(4);
    memcpy(header.data(), &i, 4);
    a->send(to_b, header, Bytes(payload).first(length(i)), i, Of::user_data);
  }
  ASSERT_TRUE(until([&] { return at_b->messages.size() >= kMany; }));
  settle();
  ASSERT_EQ(at_b->messages.size(), kMany);
  for (uint32_t i = 0; i < kMany; ++i) {
    Data header(4);
    memcpy(header.data(), &i, 4);
    const auto it = at_b->messages.find(header);
    ASSERT_NE(it, at_b->messages.end()) << i;
    ASSERT_TRUE(std::equal(it->second.begin(), it->second.end(), payload.begin()) && it->second.size() == length(i))
        << i;
    EXPECT_EQ(at_a->sent.contains(i), length(i) > 0);
  }
}

TEST_P(FabricTest, AnnouncedPayloadsWaitUntilFetched) {
  if (!announces()) GTEST_SKIP() << "nothing is announced";
  const Peer to_b = connect(*a, *b);
  at_b->policy = OnAnnounced::keep;
  const Data payload = pattern(1 << 20, 9);
  for (uint8_t i = 0; i < 20; ++i) a->send(to_b, Data{i}, payload, i, Of::user_data);
  ASSERT_TRUE(until([&] { return at_b->messages.size() + at_b->waiting.size() >= announced_at_once(20); }));
  ASSERT_TRUE(until([&] { return !at_b->waiting.empty(); })) << "1 MiB must be announced";
  settle();
  EXPECT_GE(at_b->messages.size() + at_b->announced, announced_at_once(20));
  // Short messages do not stand behind them.
  a->send(to_b, Data{100}, {}, 0);
  ASSERT_TRUE(until([&] { return at_b->messages.contains({100}); }));
  at_b->messages.erase({100});
  EXPECT_EQ(at_b->fetched_well, 0U);
  ASSERT_TRUE(until([&] {
    while (!at_b->waiting.empty()) at_b->fetch_one();
    return at_b->messages.size() == 20 && at_a->sent.size() == 20;
  }));
  for (const auto& [header, data] : at_b->messages) EXPECT_EQ(data, payload);
  EXPECT_EQ(at_b->fetched_well, at_b->announced);
}

TEST_P(FabricTest, WhatHasNotComeYetIsKnown) {
  const Peer to_b = connect(*a, *b);
  EXPECT_EQ(a->backlog(to_b), 0U);
  const Data payload = pattern(1 << 20, 9);
  for (uint8_t i = 0; i < 20; ++i) a->send(to_b, Data{i}, payload, i, Of::user_data);
  EXPECT_GE(a->backlog(to_b), 20U << 20);
  EXPECT_LT(a->backlog(to_b), (20U << 20) + (64U << 10));
  ASSERT_TRUE(until([&] { return at_b->messages.size() == 20 && at_a->sent.size() == 20; }));
  EXPECT_TRUE(until([&] { return a->backlog(to_b) == 0; }));
}

TEST_P(FabricTest, DroppedPayloadsGoBackToTheirSender) {
  const Peer to_b = connect(*a, *b);
  const Data payload = pattern(1 << 20, 9);
  for (const bool inside_callback : {true, false}) {
    at_b->policy = inside_callback ? OnAnnounced::drop : OnAnnounced::keep;
    at_a->sent.clear(), at_b->messages.clear(), at_b->announced = 0;
    for (uint8_t i = 0; i < 20; ++i) a->send(to_b, Data{i}, payload, i, Of::user_data);
    ASSERT_TRUE(until([&] {
      const bool all = at_b->waiting.size() == announced_at_once(20) || at_b->messages.size() + at_b->announced == 20;
      for (; all && !at_b->waiting.empty(); at_b->waiting.pop_front()) b->drop(at_b->waiting.front().handle);
      return at_b->messages.size() + at_b->announced == 20;
    }));
    ASSERT_TRUE(until([&] { return at_a->sent.size() == 20; }));
  }
  at_b->policy = OnAnnounced::fetch;
  a->send(to_b, Data{77}, payload, 77, Of::user_data);
  ASSERT_TRUE(until([&] { return at_b->messages.contains({77}); })) << "the connection must live on";
}

TEST_P(FabricTest, MaySendFromInsideACallback) {
  const Peer to_b = connect(*a, *b);
  const Peer to_a = connect(*b, *a);
  const Data answer = pattern(5000, 2);
  at_b->then = [&] { b->send(to_a, Data{2}, answer, 0, Of::user_data); };
  a->send(to_b, Data{1}, {}, 0);
  ASSERT_TRUE(until([&] { return at_a->messages.contains({2}); }));
  EXPECT_EQ(at_a->messages.find({2})->second, answer);
}

// The connection that delivers is the one that the new endpoint takes over.
TEST_P(FabricTest, MayConnectFromInsideACallback) {
  for (uint8_t round = 0; round < 20; ++round) {
    const auto from = net->make();
    const auto to = net->make();
    Recorder at_from(*from), at_to(*to);
    at_to.then = [&] { to->send(connect(*to, *from), Data{2}, {}, 0); };
    const Peer peer = connect(*from, *to);
    for (uint8_t i = 0; i < 50; ++i) from->send(peer, Data{i}, {}, 0);
    ASSERT_TRUE(until([&] {
      from->progress(), to->progress();
      return at_from.messages.size() == 50;
    })) << "round "
        << int{round};
  }
}

TEST_P(FabricTest, ReachesItself) {
  const Peer self = connect(*a, *a);
  const Data payload = pattern(100000, 1);
  a->send(self, Data{1}, payload, 1, Of::user_data);
  ASSERT_TRUE(until([&] { return at_a->messages.contains({1}) && at_a->sent.contains(1); }));
  EXPECT_EQ(at_a->messages.find({1})->second, payload);
}

TEST_P(FabricTest, SameAddressSamePeer) {
  EXPECT_EQ(a->address(), a->address());
  EXPECT_NE(a->address(), b->address());
  const Peer first = connect(*a, *b);
  EXPECT_EQ(connect(*a, *b), first);
  const auto c = net->make();
  EXPECT_NE(connect(*a, *c), first);
  EXPECT_EQ(connect(*a, *b), first);
}

TEST_P(FabricTest, DeathOfThePeerIsReportedOnceAndSendsFail) {
  const Peer to_b = connect(*a, *b);
  const auto address = b->address();
  connect(*b, *a);
  a->send(to_b, Data{1}, {}, 0);
  b->send(connect(*b, *a), Data{2}, {}, 0);
  ASSERT_TRUE(until([&] { return at_b->messages.size() == 1 && at_a->messages.size() == 1; }));
  net->kill(1, b);
  const Data payload = pattern(1 << 20, 1);
  // Idle: the other side must learn it without sending anything.
  ASSERT_TRUE(until([&] { return !at_a->lost.empty(); }));
  EXPECT_EQ(at_a->lost, std::vector<Peer>{to_b});
  for (uint64_t i = 0; i < 50; ++i) a->send(to_b, Data{1}, payload, i, Of::user_data);
  ASSERT_TRUE(until([&] { return at_a->sent.size() == 50; }));
  for (const auto& [context, success] : at_a->sent) EXPECT_FALSE(success);
  const auto again = a->connect(address);
  ASSERT_TRUE(again.ok());
  // The same, lost, peer; or another one, which cannot be reached.
  const std::vector<Peer> lost = again.value() == to_b ? std::vector{to_b} : std::vector{to_b, again.value()};
  a->send(again.value(), Data{1}, payload, 50, Of::user_data);
  ASSERT_TRUE(until([&] { return at_a->sent.size() == 51 && at_a->lost.size() == lost.size(); }));
  EXPECT_FALSE(at_a->sent[50]);
  EXPECT_EQ(connect(*a, address), again.value());
  for (int i = 0; i < 2000; ++i) a->progress();
  EXPECT_EQ(at_a->lost, lost);
}

// Both live: over sockets they reach each other again as others; UCX stays without the peer, and says so.
TEST_P(FabricTest, OfABrokenConnectionBothHearAndNothingHangs) {
  const std::string name = GetParam();
  if (name == "loopback" || name == "rdma") GTEST_SKIP() << "without TCP connections";
  const Peer to_b = connect(*a, *b), to_a = connect(*b, *a);
  a->send(to_b, Data{1}, {}, 0), b->send(to_a, Data{1}, {}, 0);
  ASSERT_TRUE(until([&] { return at_a->messages.size() == 1 && at_b->messages.size() == 1; }));
  ASSERT_GT(break_connections(getpid()), 0);
  const Data payload = pattern(3000, 9);
  a->send(to_b, Data{2}, payload, 1);
  ASSERT_TRUE(until([&] { return !at_a->lost.empty() && !at_b->lost.empty() && at_a->sent.contains(1); }));
  EXPECT_EQ(at_a->lost, std::vector<Peer>{to_b});
  EXPECT_EQ(at_b->lost, std::vector<Peer>{to_a});
  EXPECT_FALSE(at_a->sent[1]);
  const Peer again = connect(*a, *b);
  a->send(again, Data{3}, payload, 2);
  ASSERT_TRUE(until([&] { return at_a->sent.contains(2); }));
  const bool heals = name.starts_with("tcp");
  EXPECT_EQ(again != to_b, heals);
  EXPECT_EQ(at_a->sent[2], heals);
  EXPECT_EQ(until([&] { return !heals || at_b->messages.contains({3}); }) && at_b->messages.contains({3}), heals);
}

TEST_P(FabricTest, WhoIsGivenUpIsLost) {
  const Peer to_b = connect(*a, *b);
  connect(*b, *a);
  EXPECT_EQ(a->find(b->address()), std::optional(to_b));
  EXPECT_EQ(a->find(Data{1, 2, 3, 4}), std::nullopt);
  a->send(to_b, Data{1}, {}, 0);
  ASSERT_TRUE(until([&] { return at_b->messages.size() == 1; }));
  const Data payload = pattern(1 << 20, 1);
  // It does not answer, and much is under way.
  for (uint64_t i = 0; i < 30; ++i) a->send(to_b, Data{1}, payload, i, Of::user_data);
  for (int i = 0; i < 100; ++i) a->progress();
  a->give_up(to_b);
  a->send(to_b, Data{2}, payload, 30, Of::user_data);
  const auto end = Clock::now() + kPatience;
  while ((at_a->sent.size() < 31 || at_a->lost.empty()) && Clock::now() < end) a->progress();
  EXPECT_EQ(at_a->sent.size(), 31U);
  EXPECT_FALSE(at_a->sent[30]);
  a->give_up(to_b);
  settle();
  EXPECT_EQ(at_a->lost, std::vector<Peer>{to_b});
  if (a->event_fd() >= 0) {
    EXPECT_TRUE(until([&] { return !at_b->lost.empty(); })) << "a connection has two ends";
  }
}

TEST_P(FabricTest, SendsUnderWayWhenThePeerDiesAllComplete) {
  if (!announces()) GTEST_SKIP() << "nothing is announced";
  const Peer to_b = connect(*a, *b);
  connect(*b, *a);
  at_b->policy = OnAnnounced::keep;
  const Data payload = pattern(1 << 20, 1);
  for (uint64_t i = 0; i < 30; ++i) a->send(to_b, Data{1}, payload, i, Of::user_data);
  ASSERT_TRUE(until([&] { return at_b->announced > 0; }));
  net->kill(1, b);
  ASSERT_TRUE(until([&] { return at_a->sent.size() == 30 && !at_a->lost.empty(); }));
}

TEST_P(FabricTest, FetchFromADeadPeerEnds) {
  if (!announces()) GTEST_SKIP() << "nothing is announced";
#if UCP_API_VERSION >= UCP_VERSION(1, 18)
  if (strcmp(GetParam(), "ucx_rendezvous") == 0) GTEST_SKIP() << "this UCX never ends it";
#endif
  const Peer to_b = connect(*a, *b);
  connect(*b, *a);
  at_b->policy = OnAnnounced::keep;
  const Data payload = pattern(1 << 20, 1);
  for (uint64_t i = 0; i < 8; ++i) a->send(to_b, Data{1}, payload, i, Of::user_data);
  ASSERT_TRUE(until([&] { return at_b->announced > 0; }));
  net->kill(0, a);
  while (!at_b->waiting.empty()) at_b->fetch_one();
  ASSERT_TRUE(until([&] { return at_b->fetching.empty() && !at_b->lost.empty(); }));
}

TEST_P(FabricTest, SleepsUntilSomethingComes) {
  if (a->event_fd() < 0) GTEST_SKIP() << "this fabric is polled";
  const Peer to_b = connect(*a, *b);
  a->send(to_b, Data{1}, {}, 0);
  ASSERT_TRUE(until([&] { return at_b->messages.size() == 1; }));
  for (uint8_t i = 2; i < 50; ++i) {
    while (!b->arm()) b->progress();
    a->send(to_b, Data{i}, {}, 0);
    const auto end = Clock::now() + kPatience;
    while (at_b->messages.size() < i && Clock::now() < end) {
      a->progress();
      pollfd wait{b->event_fd(), POLLIN, 0};
      if (poll(&wait, 1, 1) != 1) continue;  // b is not progressed unless its descriptor says so
      while (b->progress()) {
      }
      while (at_b->messages.size() < i && !b->arm()) b->progress();
    }
    ASSERT_EQ(at_b->messages.size(), size_t{i});
  }
}

// UCX warns on standard output of what it has not given back when it ends, and may die of it. That a peer is gone already is no
// such thing.
TEST_P(FabricTest, DestroyedWithMuchUnderWay) {
  testing::internal::CaptureStdout();
  const Data payload = pattern(1 << 20, 1);
  for (int round = 1; round <= 5; ++round) {
    if (round > 1) {
      a = net->make(), b = net->make();
      at_a = std::make_unique<Recorder>(*a), at_b = std::make_unique<Recorder>(*b);
    }
    const Peer to_b = connect(*a, *b);
    const Peer to_a = connect(*b, *a);
    for (uint64_t i = 0; i < 30; ++i)
      a->send(to_b, Data{1}, payload, i, Of::user_data), b->send(to_a, Data{2}, payload, i, Of::user_data);
    for (int i = 0; i < 20 * round; ++i) a->progress(), b->progress();
    a->flush(1);
    a.reset(), b.reset();
  }
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_EQ(said.find("WARN"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Each, FabricTest,
                         ::testing::Values("loopback", "tcp", "tcp_encrypt", "tcp_user_data_unprotected", "rdma", "ucx",
                                           "ucx_rendezvous"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace offpath::fabric
