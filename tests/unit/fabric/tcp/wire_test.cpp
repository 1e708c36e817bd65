// SPDX-License-Identifier: BSD-3-Clause
// Connections that break, and somebody on the path who changes what is said: at every byte of a small exchange.
#include "pair.hpp"
#include "proxy.hpp"

#include <algorithm>

namespace offpath::fabric::tcp {
namespace {

using Deed = Proxy::Deed;

class Path {
 public:
  Path(Security security, Proxy::Plan plan) : a(quick(security)), b(quick(security)), proxy(b->address(), plan) {
    to_b = a->connect(proxy.address()).value();
    const Exchange exchange;
    exchange.say(*a.endpoint, to_b);
    b.hears->then = [this] {
      // It answers the first message, by the connection that the other one has made.
      if (std::exchange(answered_, true)) return;
      to_a = b->connect(a->address()).value();
      exchange_.say(*b.endpoint, *to_a);
    };
    // What is under way ends, well or not.
    const auto heard = [&] { return Exchange::all_heard(*a.hears) && Exchange::all_heard(*b.hears); };
    const auto lost = [&] { return !a.hears->lost.empty() && (!to_a || !b.hears->lost.empty()); };
    ended = run_until([&] { return heard() || lost(); }, [&] { a->progress(), b->progress(), proxy.step(); });
    complete = heard();
    if (lost() && !complete) {
      EXPECT_TRUE(Exchange::all_sent(*a.hears)) << "a send has no end";
      EXPECT_TRUE(!to_a || Exchange::all_sent(*b.hears)) << "a send has no end";
    }
    EXPECT_LE(a.hears->lost.size(), 1U);
    EXPECT_LE(b.hears->lost.size(), 1U);
    EXPECT_TRUE(a.hears->fetching.empty() || !a.hears->lost.empty());
  }
  void expect_genuine(bool payloads_too) {
    Exchange::expect_genuine(*a.hears, payloads_too);
    Exchange::expect_genuine(*b.hears, payloads_too);
  }

  Side a, b;
  Proxy proxy;
  Peer to_b = 0;
  std::optional<Peer> to_a;
  bool ended = false, complete = false;

 private:
  Exchange exchange_;
  bool answered_ = false;
};

class TcpWire : public ::testing::TestWithParam<Security> {
 protected:
  // Of both directions. Where everything is done alike, at every byte in one kind of security, at some in the others.
  void at_every_byte(Deed deed, Security everywhere) {
    const bool payloads_too = deed == Deed::cut || GetParam() != Security::user_data_unprotected;
    Path whole(GetParam(), {});
    ASSERT_TRUE(whole.complete);
    whole.expect_genuine(true);
    for (const bool back : {false, true}) {
      const size_t bytes = whole.proxy.passed(back);
      ASSERT_GT(bytes, 600U);
      const size_t stride = GetParam() == everywhere ? 1 : 5;
      for (size_t at = 0; at < bytes; at += stride) {
        Path path(GetParam(), {deed, back, at, static_cast<int>(at % 8)});
        ASSERT_TRUE(path.ended) << "byte " << at << (back ? " back" : "");
        path.expect_genuine(payloads_too);
        if (HasFailure()) FAIL() << "byte " << at << (back ? " back" : "");
      }
    }
  }
};

TEST_P(TcpWire, CutAtEveryByte) { at_every_byte(Deed::cut, Security::auth); }
TEST_P(TcpWire, ABitFlippedAtEveryByte) { at_every_byte(Deed::flip, GetParam()); }
TEST_P(TcpWire, WordsRepeatedAtEveryByte) { at_every_byte(Deed::repeat, Security::auth); }

TEST_P(TcpWire, ARecordingSaysNothing) {
  Path path(GetParam(), {});
  ASSERT_TRUE(path.complete);
  const auto heard = path.b.hears->messages.size();
  const auto place = EndpointAddress::decode(path.b->address())->places.front();
  for (const auto& recording : path.proxy.recorded()) {
    const uint64_t strangers = path.b->counters().strangers;
    base::Fd socket = begin_connect(place, {});
    ASSERT_TRUE(run_until([&] { return path.b->counters().strangers > strangers; },
                          [&] {
                            static_cast<void>(
                                ::send(socket.get(), recording.data(), recording.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
                            path.b->progress();
                          }));
  }
  EXPECT_EQ(path.b.hears->messages.size(), heard);
  EXPECT_TRUE(path.b.hears->lost.empty()) << "nor does it disturb those who are there";
}

INSTANTIATE_TEST_SUITE_P(Each, TcpWire, ::testing::ValuesIn(kSecurities), [](const auto& test) {
  std::string name = name_of(test.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace offpath::fabric::tcp
