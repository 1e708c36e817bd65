// SPDX-License-Identifier: BSD-3-Clause
// Two endpoints on the loopback device, and a small exchange that uses all kinds of messages both ways.
#pragma once

#include "../each_fabric.hpp"
#include "fabric/tcp/endpoint.hpp"

namespace offpath::fabric::tcp {

constexpr Security kSecurities[] = {Security::auth, Security::encrypt, Security::user_data_unprotected};

inline Options quick(Security security = Security::auth, uint8_t key = 1) {
  Options options;
  options.secret = seal::secret_for(seal::Use::fabric, {key});
  options.security = security;
  options.devices = "lo";
  options.tick_ms = 1;
  options.brief_bytes = 64;  // the exchange is to be short
  return options;
}

struct Side {
  explicit Side(const Options& options) : endpoint(std::make_unique<Endpoint>(options)) {
    const auto status = endpoint->open();
    EXPECT_TRUE(status.ok()) << status.text();
    hears = std::make_unique<Recorder>(*endpoint);
  }
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<Recorder> hears;
  Endpoint* operator->() { return endpoint.get(); }
};

// What each side says in it: headers, short and long payloads. The header is the number.
struct Exchange {
  static constexpr uint8_t kMessages = 3;
  static size_t bytes_of(uint8_t number) { return number % 3 == 0 ? 0 : number % 3 == 1 ? 20 : 80; }
  static Data payload(uint8_t number) { return Data(bytes_of(number), static_cast<uint8_t>(number + 1)); }
  Exchange() {
    for (uint8_t number = 0; number < kMessages; ++number) payloads.push_back(payload(number));
  }
  void say(Endpoint& endpoint, Peer peer) const {
    for (uint8_t number = 0; number < kMessages; ++number) {
      endpoint.send(peer, Data{number}, payloads[number], number, Of::user_data);
    }
  }
  // Nothing that was not said, nothing twice, and those without payload in their order.
  static void expect_genuine(const Recorder& hears, bool payloads_too) {
    for (const auto& [header, data] : hears.messages) {
      ASSERT_EQ(header.size(), 1U);
      ASSERT_LT(header[0], kMessages);
      ASSERT_EQ(hears.messages.count(header), 1U);
      ASSERT_EQ(data.size(), bytes_of(header[0]));
      ASSERT_TRUE(!payloads_too || data == payload(header[0])) << int{header[0]};
    }
  }
  static bool all_heard(const Recorder& hears) { return hears.messages.size() == kMessages; }
  static bool all_sent(const Recorder& told) { return told.sent.size() == 2; }
  std::vector<Data> payloads;
};

template <typename Done, typename Step>
bool run_until(Done&& done, Step&& step) {
  const auto end = Clock::now() + kPatience;
  while (!done() && Clock::now() < end) step();
  return done();
}

}  // namespace offpath::fabric::tcp
