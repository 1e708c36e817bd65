// SPDX-License-Identifier: BSD-3-Clause
// What every fabric must do, run over each of them. A new fabric adds one Net below.
#include "fabric/fabric.hpp"
#include "fabric/loopback/loopback.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

#include <gtest/gtest.h>

#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>

namespace offpath::fabric {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(60);  // against hanging only; nothing takes a second

class Net {
 public:
  virtual ~Net() = default;
  virtual std::unique_ptr<Fabric> make() = 0;
  // The endpoint made as number `index` dies.
  virtual void kill(uint32_t index, std::unique_ptr<Fabric>& endpoint) = 0;
};

class LoopbackNet : public Net {
 public:
  std::unique_ptr<Fabric> make() override { return network_.make_endpoint(); }
  void kill(uint32_t index, std::unique_ptr<Fabric>&) override { network_.cut(index); }

 private:
  LoopbackNetwork network_{99};
};

class UcxNet : public Net {
 public:
  UcxNet() {
    setenv("OFFPATH_UCX_TLS", "tcp,self", 1);
    setenv("OFFPATH_UCX_NET_DEVICES", "lo", 1);
    auto context = UcxContext::create();
    EXPECT_TRUE(context.ok()) << context.status().text();
    context_ = std::move(context.value());
  }
  std::unique_ptr<Fabric> make() override {
    auto endpoint = context_->make_endpoint();
    EXPECT_TRUE(endpoint.ok()) << endpoint.status().text();
    return std::move(endpoint.value());
  }
  void kill(uint32_t, std::unique_ptr<Fabric>& endpoint) override { endpoint.reset(); }

 private:
  std::unique_ptr<UcxContext> context_;
};

using Data = std::vector<uint8_t>;

enum class OnAnnounced { fetch, drop, keep };

class Recorder : public Receiver {
 public:
  explicit Recorder(Fabric& fabric) : fabric_(fabric) { fabric.set_receiver(this); }
  void on_message(Bytes header, Bytes payload) override { arrive({header.begin(), header.end()}, {payload.begin(), payload.end()}); }
  void on_announced(Bytes header, size_t payload_bytes, Announced handle) override {
    ++announced;
    const Data head(header.begin(), header.end());
    if (policy == OnAnnounced::drop) return fabric_.drop(handle);
    waiting.push_back({head, payload_bytes, handle});
    if (policy == OnAnnounced::fetch) fetch_one();
  }
  void on_fetched(uint64_t context, bool success) override {
    ASSERT_TRUE(fetching.contains(context));
    if (success) arrive(fetching[context].first, fetching[context].second);
    fetched_well += success ? 1 : 0;
    fetching.erase(context);
  }
  void on_sent(uint64_t context, bool success) override {
    EXPECT_TRUE(sent.emplace(context, success).second) << "reported twice";
  }
  void on_peer_lost(Peer peer) override { lost.push_back(peer); }

  void fetch_one() {
    const Waiting next = waiting.front();
    waiting.pop_front();
    const uint64_t context = ++last_context_;
    auto& [head, data] = fetching[context];
    head = next.header;
    data.resize(next.bytes);
    fabric_.fetch(next.handle, data.data(), next.bytes, context);
  }

  struct Waiting {
    Data header;
    size_t bytes;
    Announced handle;
  };
  OnAnnounced policy = OnAnnounced::fetch;
  std::multimap<Data, Data> messages;  // header -> payload
  std::function<void()> then;          // runs inside the callback
  std::deque<Waiting> waiting;
  std::map<uint64_t, std::pair<Data, Data>> fetching;
  std::map<uint64_t, bool> sent;
  std::vector<Peer> lost;
  size_t announced = 0, fetched_well = 0;

 private:
  void arrive(Data header, Data payload) {
    messages.emplace(std::move(header), std::move(payload));
    if (then) then();
  }
  Fabric& fabric_;
  uint64_t last_context_ = 0;
};

class FabricTest : public ::testing::TestWithParam<const char*> {
 protected:
  FabricTest() {
    if (strcmp(GetParam(), "loopback") == 0) {
      net = std::make_unique<LoopbackNet>();
    } else {
      net = std::make_unique<UcxNet>();
    }
    a = net->make();
    b = net->make();
    at_a = std::make_unique<Recorder>(*a);
    at_b = std::make_unique<Recorder>(*b);
  }
  ~FabricTest() override { a.reset(), b.reset(); }
  bool until(const std::function<bool()>& done) {
    const auto end = Clock::now() + kPatience;
    while (!done() && Clock::now() < end) {
      if (a) a->progress();
      if (b) b->progress();
    }
    return done();
  }
  void settle() {
    for (int i = 0; i < 2000; ++i) a->progress(), b->progress();
  }
  Peer connect(Fabric& from, Fabric& to) {
    const auto peer = from.connect(to.address());
    EXPECT_TRUE(peer.ok()) << peer.status().text();
    return peer.value();
  }
  static Data pattern(size_t bytes, uint8_t seed) {
    Data out(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(i * 7 + i / 251 + seed);
    return out;
  }

  std::unique_ptr<Net> net;
  std::unique_ptr<Fabric> a, b;
  std::unique_ptr<Recorder> at_a, at_b;
};

TEST_P(FabricTest, HeaderOnlyArrivesAndIsCopied) {
  const Peer to_b = connect(*a, *b);
  for (size_t bytes = 1; bytes <= kMaxHeaderBytes; ++bytes) {
    Data header = pattern(bytes, 1);
    a->send(to_b, header, {}, 0);
    std::fill(header.begin(), header.end(), uint8_t{0});  // ours again at once
  }
  ASSERT_TRUE(until([&] { return at_b->messages.size() == kMaxHeaderBytes; }));
  for (size_t bytes = 1; bytes <= kMaxHeaderBytes; ++bytes) EXPECT_EQ(at_b->messages.count(pattern(bytes, 1)), 1U) << bytes;
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
    a->send(to_b, Data{seed}, one, seed);
    b->send(to_a, Data{seed}, two, seed);
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
    a->send(to_b, header, Bytes(payload).first(length(i)), i);
  }
  ASSERT_TRUE(until([&] { return at_b->messages.size() >= kMany; }));
  settle();
  ASSERT_EQ(at_b->messages.size(), kMany);
  for (uint32_t i = 0; i < kMany; ++i) {
    Data header(4);
    memcpy(header.data(), &i, 4);
    const auto it = at_b->messages.find(header);
    ASSERT_NE(it, at_b->messages.end()) << i;
    ASSERT_TRUE(std::equal(it->second.begin(), it->second.end(), payload.begin()) && it->second.size() == length(i)) << i;
    EXPECT_EQ(at_a->sent.contains(i), length(i) > 0);
  }
}

TEST_P(FabricTest, AnnouncedPayloadsWaitUntilFetched) {
  const Peer to_b = connect(*a, *b);
  at_b->policy = OnAnnounced::keep;
  const Data payload = pattern(1 << 20, 9);
  for (uint8_t i = 0; i < 20; ++i) a->send(to_b, Data{i}, payload, i);
  ASSERT_TRUE(until([&] { return at_b->messages.size() + at_b->waiting.size() == 20; }));
  ASSERT_GT(at_b->waiting.size(), 0U) << "1 MiB must be announced";
  settle();
  const size_t eager = at_b->messages.size();
  EXPECT_EQ(eager + at_b->announced, 20U);
  while (!at_b->waiting.empty()) at_b->fetch_one();
  ASSERT_TRUE(until([&] { return at_b->messages.size() == 20 && at_a->sent.size() == 20; }));
  for (const auto& [header, data] : at_b->messages) EXPECT_EQ(data, payload);
  EXPECT_EQ(at_b->fetched_well, at_b->announced);
}

TEST_P(FabricTest, DroppedPayloadsGoBackToTheirSender) {
  const Peer to_b = connect(*a, *b);
  const Data payload = pattern(1 << 20, 9);
  for (const bool inside_callback : {true, false}) {
    at_b->policy = inside_callback ? OnAnnounced::drop : OnAnnounced::keep;
    at_a->sent.clear(), at_b->messages.clear(), at_b->announced = 0;
    for (uint8_t i = 0; i < 20; ++i) a->send(to_b, Data{i}, payload, i);
    ASSERT_TRUE(until([&] { return at_b->messages.size() + at_b->announced == 20; }));
    for (; !at_b->waiting.empty(); at_b->waiting.pop_front()) b->drop(at_b->waiting.front().handle);
    ASSERT_TRUE(until([&] { return at_a->sent.size() == 20; }));
  }
  at_b->policy = OnAnnounced::fetch;
  a->send(to_b, Data{77}, payload, 77);
  ASSERT_TRUE(until([&] { return at_b->messages.contains({77}); })) << "the connection must live on";
}

TEST_P(FabricTest, MaySendFromInsideACallback) {
  const Peer to_b = connect(*a, *b);
  const Peer to_a = connect(*b, *a);
  const Data answer = pattern(5000, 2);
  at_b->then = [&] { b->send(to_a, Data{2}, answer, 0); };
  a->send(to_b, Data{1}, {}, 0);
  ASSERT_TRUE(until([&] { return at_a->messages.contains({2}); }));
  EXPECT_EQ(at_a->messages.find({2})->second, answer);
}

TEST_P(FabricTest, ReachesItself) {
  const Peer self = connect(*a, *a);
  const Data payload = pattern(100000, 1);
  a->send(self, Data{1}, payload, 1);
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
  for (uint64_t i = 0; i < 50; ++i) a->send(to_b, Data{1}, payload, i);
  ASSERT_TRUE(until([&] { return at_a->sent.size() == 50; }));
  for (const auto& [context, success] : at_a->sent) EXPECT_FALSE(success);
  const auto again = a->connect(address);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value(), to_b) << "the same, lost, peer";
  for (int i = 0; i < 2000; ++i) a->progress();
  EXPECT_EQ(at_a->lost.size(), 1U);
}

TEST_P(FabricTest, SendsUnderWayWhenThePeerDiesAllComplete) {
  const Peer to_b = connect(*a, *b);
  connect(*b, *a);
  at_b->policy = OnAnnounced::keep;
  const Data payload = pattern(1 << 20, 1);
  for (uint64_t i = 0; i < 30; ++i) a->send(to_b, Data{1}, payload, i);
  ASSERT_TRUE(until([&] { return at_b->announced > 0; }));
  net->kill(1, b);
  ASSERT_TRUE(until([&] { return at_a->sent.size() == 30 && !at_a->lost.empty(); }));
}

TEST_P(FabricTest, FetchFromADeadPeerEnds) {
  const Peer to_b = connect(*a, *b);
  connect(*b, *a);
  at_b->policy = OnAnnounced::keep;
  const Data payload = pattern(1 << 20, 1);
  for (uint64_t i = 0; i < 8; ++i) a->send(to_b, Data{1}, payload, i);
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

TEST_P(FabricTest, DestroyedWithMuchUnderWay) {
  const Peer to_b = connect(*a, *b);
  const Peer to_a = connect(*b, *a);
  const Data payload = pattern(1 << 20, 1);
  for (uint64_t i = 0; i < 30; ++i) a->send(to_b, Data{1}, payload, i), b->send(to_a, Data{2}, payload, i);
  for (int i = 0; i < 20; ++i) a->progress(), b->progress();
  a->flush(1);
}

INSTANTIATE_TEST_SUITE_P(Each, FabricTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace offpath::fabric
