// SPDX-License-Identifier: BSD-3-Clause
// Endpoints on real sockets: who may connect, what happens when both do, little room, strangers, the end.
#include "base/log.hpp"
#include "pair.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <random>

namespace offpath::fabric::tcp {
namespace {

Place place_of(Side& side) { return EndpointAddress::decode(side->address())->places.front(); }

bool both_until(Side& a, Side& b, const std::function<bool()>& done) {
  return run_until(done, [&] { a->progress(), b->progress(); });
}

TEST(TcpEndpoint, BothConnectAtTheSameTime) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Side a(quick()), b(quick());
    const Exchange exchange;
    const Peer to_b = a->connect(b->address()).value();
    exchange.say(*a.endpoint, to_b);
    for (uint32_t steps = random() % 12; steps > 0; --steps) (random() % 2 == 0 ? a : b)->progress();
    const Peer to_a = b->connect(a->address()).value();
    exchange.say(*b.endpoint, to_a);
    ASSERT_TRUE(run_until([&] { return Exchange::all_heard(*a.hears) && Exchange::all_heard(*b.hears); },
                          [&] { (random() % 2 == 0 ? a : b)->progress(); }))
        << "round " << round;
    Exchange::expect_genuine(*a.hears, true);
    Exchange::expect_genuine(*b.hears, true);
    EXPECT_EQ(a->counters().links, 2U) << "a pair of connections";
    EXPECT_EQ(b->counters().links, 2U);
    EXPECT_TRUE(a.hears->lost.empty() && b.hears->lost.empty());
    EXPECT_EQ(a->counters().wrong_frames + b->counters().wrong_frames, 0U);
  }
}

TEST(TcpEndpoint, AnotherKeyIsAStrangers) {
  Side a(quick(Security::auth, 1)), b(quick(Security::auth, 2));
  const Peer to_b = a->connect(b->address()).value();
  const Exchange exchange;
  exchange.say(*a.endpoint, to_b);
  ASSERT_TRUE(both_until(a, b, [&] { return !a.hears->lost.empty() && Exchange::all_sent(*a.hears); }));
  EXPECT_GE(b->counters().strangers, 1U);
  EXPECT_EQ(b->counters().links, 0U);
  EXPECT_TRUE(b.hears->messages.empty());
  for (const auto& [context, success] : a.hears->sent) EXPECT_FALSE(success);
}

TEST(TcpEndpoint, SecuritiesMustBeTheSame) {
  for (const Security one : kSecurities) {
    for (const Security other : kSecurities) {
      Side a(quick(one)), b(quick(other));
      const Peer to_b = a->connect(b->address()).value();
      a->send(to_b, Data{1}, {}, 0);
      ASSERT_TRUE(both_until(a, b, [&] { return a.hears->lost.size() + b.hears->messages.size() == 1; }));
      EXPECT_EQ(a.hears->lost.empty(), one == other);
    }
  }
}

// The port is the same, the service another.
TEST(TcpEndpoint, WhoAnswersInsteadOfAnotherIsNotTakenForIt) {
  Side a(quick()), b(quick()), c(quick());
  auto address = *EndpointAddress::decode(b->address());
  address.places = EndpointAddress::decode(c->address())->places;
  const Peer to_b = a->connect(address.encode()).value();
  a->send(to_b, Data{1}, {}, 0);
  ASSERT_TRUE(both_until(a, c, [&] { return !a.hears->lost.empty(); }));
  EXPECT_TRUE(c.hears->messages.empty());
  const Peer to_c = a->connect(c->address()).value();
  EXPECT_NE(to_c, to_b);
  a->send(to_c, Data{2}, {}, 0);
  EXPECT_TRUE(both_until(a, c, [&] { return c.hears->messages.size() == 1; }));
}

TEST(TcpEndpoint, TheNextPlaceIsTriedWhereNobodyAnswers) {
  Side a(quick()), b(quick());
  auto address = *EndpointAddress::decode(b->address());
  Place nobody = address.places.front();
  { const base::Fd closed = std::move(listen_at(nobody, {}).value()); }
  address.places.insert(address.places.begin(), 3, nobody);
  const Peer to_b = a->connect(address.encode()).value();
  a->send(to_b, Data{1}, {}, 0);
  EXPECT_TRUE(both_until(a, b, [&] { return b.hears->messages.size() == 1; }));
  address.places.resize(3);
  address.id[0] ^= 1;
  const Peer to_nobody = a->connect(address.encode()).value();
  EXPECT_TRUE(both_until(a, b, [&] { return a.hears->lost == std::vector<Peer>{to_nobody}; }));
}

// A place answers when its time is up: that says nothing of the next one, which answers later.
TEST(TcpEndpoint, AnAnswerThatComesWithATickIsOfItsOwnPlace) {
  constexpr int kTicksToNextPlace = 6;
  Options slow = quick();
  slow.tick_ms = 100;
  slow.sockets.backlog = 1;
  Side a(slow), b(slow);
  auto address = *EndpointAddress::decode(b->address());
  address.places.resize(1);
  const Place next = address.places.front();
  Place first = next;
  base::Fd listening = std::move(listen_at(first, slow.sockets).value());
  address.places.insert(address.places.begin(), first);
  std::vector<base::Fd> before;  // as many as have room there
  for (int i = 0; i < 2; ++i) before.push_back(begin_connect(first, {})), before.push_back(begin_connect(next, {}));
  const auto await = [](int fd) {
    pollfd waits{fd, POLLIN, 0};
    ASSERT_EQ(poll(&waits, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())), 1);
  };
  a->send(a->connect(address.encode()).value(), Data{1}, {}, 0);
  for (int tick = 1; tick < kTicksToNextPlace; ++tick) {
    await(a->event_fd());
    a->progress();
  }
  await(a->event_fd());  // the last tick, which nobody has seen yet
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(accept_from(listening.get(), {}).valid());
  await(listening.get());
  EXPECT_TRUE(accept_from(listening.get(), {}).valid());  // and is ended at once
  a->progress();
  listening.reset();
  EXPECT_TRUE(both_until(a, b, [&] { return b.hears->messages.size() == 1 || !a.hears->lost.empty(); }));
  EXPECT_TRUE(a.hears->lost.empty());
}

// It dies while both sides are being proven. Nobody is there when it is tried again, so that is once, and the reason is true.
TEST(TcpEndpoint, WhoHasGoneIsNotAskedForEver) {
  Side a(quick());
  EndpointAddress address = *EndpointAddress::decode(a->address());
  address.id[0] ^= 1;
  address.places.resize(1);
  base::Fd listening = std::move(listen_at(address.places.front(), {}).value());
  testing::internal::CaptureStderr();
  ASSERT_TRUE(base::log_open("/dev/stderr", base::LogLevel::warn));
  a->send(a->connect(address.encode()).value(), Data{1}, {}, 0);
  const auto step = [&] {
    a->progress();
    if (listening.valid() && accept_from(listening.get(), {}).valid()) listening.reset();
  };
  EXPECT_TRUE(run_until([&] { return !a.hears->lost.empty(); }, step));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("it cannot be reached"), std::string::npos);
}

TEST(TcpEndpoint, OverIpv6) {
  Side a(quick()), b(quick());
  auto address = *EndpointAddress::decode(b->address());
  std::erase_if(address.places, [](const Place& place) { return !place.is_v6; });
  if (address.places.empty()) GTEST_SKIP() << "the loopback device has no IPv6 address";
  a->send(a->connect(address.encode()).value(), Data{1}, {}, 0);
  EXPECT_TRUE(both_until(a, b, [&] { return b.hears->messages.size() == 1; }));
}

TEST(TcpEndpoint, LittleRoomOnlySlowsItDown) {
  for (const Security security : kSecurities) {
    Options options = quick(security);
    options.brief_bytes = kBriefBytes;
    options.sockets = {1, 8192};  // with less the kernel waits for timers
    Side a(options), b(options);
    const Peer to_b = a->connect(b->address()).value();
    const Peer to_a = b->connect(a->address()).value();
    Data payload(60000);
    for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(i * 7 + i / 251);
    constexpr size_t kMany = 40;
    const auto part = [&](size_t i) { return Bytes(payload).subspan(i, i * 997 % 50000); };
    for (uint8_t i = 0; i < kMany; ++i) a->send(to_b, Data{i}, part(i), i), b->send(to_a, Data{i}, part(i), i);
    ASSERT_TRUE(both_until(a, b, [&] { return a.hears->messages.size() + b.hears->messages.size() == 2 * kMany; }));
    for (const Side* side : {&a, &b}) {
      for (uint8_t i = 0; i < kMany; ++i) {
        const Data& data = side->hears->messages.find({i})->second;
        EXPECT_EQ(data, Data(part(i).begin(), part(i).end())) << name_of(security) << " " << int{i};
      }
    }
  }
}

// Nobody reads at the other end: nothing blocks, nothing spins, nothing is lost.
TEST(TcpEndpoint, WhoDoesNotReadIsWaitedFor) {
  Side a(quick()), b(quick());
  const Peer to_b = a->connect(b->address()).value();
  a->send(to_b, Data{200}, {}, 0);
  ASSERT_TRUE(both_until(a, b, [&] { return b.hears->messages.size() == 1; }));
  const Data payload(1 << 20, 3);
  for (uint8_t i = 0; i < 50; ++i) a->send(to_b, Data{i}, payload, i);
  ASSERT_TRUE(both_until(a, b, [&] { return a.hears->sent.size() + b.hears->messages.size() > 1; }));
  ASSERT_TRUE(run_until([&] { return !a->progress() && a->arm(); }, [] {}));
  EXPECT_LT(a.hears->sent.size(), 50U);
  ASSERT_TRUE(both_until(a, b, [&] { return b.hears->messages.size() == 51 && a.hears->sent.size() == 50; }));
}

TEST(TcpEndpoint, WhatWasSaidBeforeByeArrives) {
  for (const Security security : {Security::auth, Security::encrypt}) {
    auto a = std::make_unique<Side>(quick(security));
    Side b(quick(security));
    const Exchange exchange;
    b->send(b->connect((*a)->address()).value(), Data{1}, exchange.payloads[2], 1);  // unread when it goes
    const Peer to_b = (*a)->connect(b->address()).value();
    exchange.say(*a->endpoint, to_b);
    (*a)->progress();
    ASSERT_TRUE(both_until(*a, b, [&] { return b->counters().links == 2; }));
    (*a)->flush(60000);
    a.reset();
    ASSERT_TRUE(run_until([&] { return !b.hears->lost.empty(); }, [&] { b->progress(); }));
    EXPECT_TRUE(Exchange::all_heard(*b.hears)) << b.hears->messages.size();
    Exchange::expect_genuine(*b.hears, true);
  }
}

// Who is gone takes nothing any more; the end of a service does not wait for him.
TEST(TcpEndpoint, TheEndDoesNotWaitForTheDead) {
  auto a = std::make_unique<Side>(quick());
  Side b(quick());
  const Peer to_a = b->connect((*a)->address()).value();
  b->send(to_a, Data{1}, {}, 0);
  ASSERT_TRUE(both_until(*a, b, [&] { return !a->hears->messages.empty(); }));
  b->send(to_a, Data{2}, {}, 0);
  b->progress();
  a.reset();  // with something unread
  b->send(to_a, Data{3}, {}, 0);
  const auto begin = Clock::now();
  b->flush(2 * 60000);
  EXPECT_LT(Clock::now() - begin, kPatience);
}

TEST(TcpEndpoint, ThousandsOfStrangersDisturbNobody) {
  Options options = quick();
  options.max_strangers = 16;
  Side a(options), b(options);
  const Place door = place_of(b);
  std::mt19937 random(7);
  std::vector<base::Fd> silent;
  const Words of_another_job = Initiator(quick(Security::auth, 9).secret, {}).greet();
  constexpr uint8_t kRounds = 200;
  Peer to_b = 0;
  for (uint8_t round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 10; ++i) {
      base::Fd stranger = begin_connect(door, {});
      ASSERT_TRUE(stranger.valid());
      Words words(random() % (2 * seal::kGreetingBytes));
      for (uint8_t& byte : words) byte = static_cast<uint8_t>(random());
      if (i % 5 == 1) words = of_another_job;
      if (i % 5 == 2) words.assign(of_another_job.begin(), of_another_job.begin() + 50);
      if (i % 5 != 3) static_cast<void>(send_words(stranger.get(), words));
      if (i % 2 == 0) silent.push_back(std::move(stranger));
      if (silent.size() > 100) silent.erase(silent.begin());
    }
    if (round == kRounds / 2) to_b = a->connect(b->address()).value();
    if (round >= kRounds / 2) a->send(to_b, Data{round}, {}, 0);
    a->progress(), b->progress();
  }
  ASSERT_TRUE(both_until(a, b, [&] { return b.hears->messages.size() == kRounds / 2; }));
  ASSERT_TRUE(both_until(a, b, [&] { return b->counters().strangers == 10 * kRounds; })) << b->counters().strangers;
  EXPECT_TRUE(a.hears->lost.empty() && b.hears->lost.empty());
}

TEST(TcpEndpoint, ManyComeAndGo) {
  Side b(quick());
  for (int round = 0; round < 300; ++round) {
    Side a(quick());
    a->send(a->connect(b->address()).value(), Data{1}, {}, 0);
    b.hears->messages.clear();
    ASSERT_TRUE(both_until(a, b, [&] { return b.hears->messages.size() == 1; })) << round;
  }
  EXPECT_TRUE(b.hears->lost.empty()) << "nobody asked for them";
}

TEST(TcpEndpoint, WaitsForDescriptors) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors to look at an object";
#endif
  // Who accepts lacks them, or who connects: he has tried all places of the other, and rested, before there is room.
  for (const bool has_begun : {true, false}) {
    Options slow = quick();
    slow.tick_ms = 50;  // eight rests are the end
    Side a(slow), b(quick());
    const auto begin = [&] { a->send(a->connect(b->address()).value(), Data{1}, {}, 0); };
    if (has_begun) begin();
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit none{0, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    if (!has_begun) begin();
    const auto end = Clock::now() + std::chrono::milliseconds(3 * slow.tick_ms);
    while (Clock::now() < end) a->progress(), b->progress();
    EXPECT_TRUE(b.hears->messages.empty());
    setrlimit(RLIMIT_NOFILE, &limit);
    EXPECT_TRUE(both_until(a, b, [&] { return b.hears->messages.size() == 1; })) << has_begun;
  }
}

}  // namespace
}  // namespace offpath::fabric::tcp
