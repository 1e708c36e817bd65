// SPDX-License-Identifier: BSD-3-Clause
// Somebody on the path: payloads of all lengths, each changed, repeated, left out or put into another order somewhere. The
// connection is given up, and no changed byte is handed on, nor written to where the payload was to go.
#include "pair.hpp"
#include "proxy.hpp"

#include <random>

namespace offpath::fabric::tcp {
namespace {

using Deed = Proxy::Deed;

// The mode that nobody has chosen, and user data; in the one that leaves these alone, what is acted upon.
struct Case {
  Security security;
  Of of;
};
constexpr Case kCases[] = {{Security::auth, Of::user_data}, {Security::user_data_unprotected, Of::interpreted}};

Options usual(Security security) {
  Options options;
  options.security = security;
  options.secret = quick().secret;
  options.devices = "lo";
  options.tick_ms = 1;
  return options;
}

Data pattern(size_t bytes) {
  Data out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(i * 7 + i / 251 + bytes);
  return out;
}

class Middle : public ::testing::TestWithParam<size_t> {
 protected:
  void expect_nothing_changed(const Case& how);
};

TEST_P(Middle, NoChangedByteArrives) {
  for (const Case& how : kCases) expect_nothing_changed(how);
}

void Middle::expect_nothing_changed(const Case& how) {
  const Data payload = pattern(GetParam());
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  for (const Deed deed : {Deed::flip, Deed::repeat, Deed::leave_out, Deed::turn}) {
    for (int round = 0; round < 8; ++round) {
      Side a(usual(how.security)), b(usual(how.security));
      Proxy proxy(b->address(), {});
      const auto until = [&](auto&& done) {
        return run_until(done, [&] { a->progress(), b->progress(), proxy.step(); });
      };
      const Peer to_b = a->connect(proxy.address()).value();
      a->send(to_b, Data{1}, payload, 1, how.of);
      ASSERT_TRUE(until([&] { return b.hears->messages.size() == 1 && !a->is_connecting() && !b->is_connecting(); }));
      const size_t at = random() % (kPrefixBytes + payload.size() + kTagBytes);
      proxy.plan_from_here({deed, false, at, static_cast<int>(random() % 8)});
      a->send(to_b, Data{2}, payload, 2, how.of);
      a->send(to_b, Data{3}, payload, 3, how.of);
      const auto lost = [&] { return !a.hears->lost.empty(); };
      ASSERT_TRUE(until([&] { return lost() || b.hears->messages.size() == 3; }));
      for (const auto& [header, data] : b.hears->messages) ASSERT_EQ(data, payload) << "changed at byte " << at;
      ASSERT_TRUE(until([&] { return !lost() || !b.hears->lost.empty() || b.hears->fetching.empty(); }));
      for (const Data& place : b.hears->unfetched) ASSERT_EQ(place, Data(place.size())) << "changed at byte " << at;
      EXPECT_EQ(lost(), proxy.done()) << "nobody noticed, at byte " << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Bytes, Middle, ::testing::Values(20, 8192, 8193, 65536, 1 << 20),
                         [](const auto& test) { return std::to_string(test.param); });

}  // namespace
}  // namespace offpath::fabric::tcp
