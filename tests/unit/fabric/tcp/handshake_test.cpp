// SPDX-License-Identifier: BSD-3-Clause
// The handshake and addresses, without sockets: whoever does not know the key gets nowhere, whatever he repeats,
// reflects or changes.
#include "fabric/tcp/address.hpp"
#include "fabric/tcp/handshake.hpp"

#include <gtest/gtest.h>

#include <random>

namespace offpath::fabric::tcp {
namespace {

const Secret kSecret = fabric_secret(Secret{7});
constexpr EndpointId kA{1}, kB{2};

struct Handshakes {
  Initiator initiator{kSecret, Greeting{Lane::bulk, Security::full, kA, kB}};
  Responder responder{kSecret, kB};
  // The four messages; `change` may damage one. Returns whether both got to the end.
  template <typename Change>
  bool run(Change&& change) {
    Words words = initiator.greet();
    change(0, words);
    words = responder.take(words);
    if (responder.stage() != Stage::proof) return false;
    change(1, words);
    words = initiator.take(words);
    if (initiator.stage() != Stage::verdict) return false;
    change(2, words);
    responder.take(words);
    if (responder.stage() != Stage::judging) return false;
    words = responder.judge(Verdict::accepted, Security::full);
    change(3, words);
    initiator.take(words);
    return initiator.stage() == Stage::done;
  }
};

constexpr auto kAsItIs = [](int, Words&) {};
constexpr size_t kLengths[] = {kGreetingBytes, kChallengeBytes, kProofBytes, kVerdictBytes};

TEST(TcpHandshake, BothLearnWhoTheOtherIsAndHaveTheSameKeys) {
  Handshakes exchange;
  ASSERT_TRUE(exchange.run([](int number, Words& words) { EXPECT_EQ(words.size(), kLengths[number]); }));
  const Greeting& greeting = exchange.responder.greeting();
  EXPECT_EQ(greeting.from, kA);
  EXPECT_EQ(greeting.to, kB);
  EXPECT_EQ(greeting.lane, Lane::bulk);
  EXPECT_EQ(greeting.security, Security::full);
  EXPECT_EQ(exchange.initiator.verdict(), Verdict::accepted);
  EXPECT_EQ(exchange.initiator.keys().out, exchange.responder.keys().in);
  EXPECT_EQ(exchange.initiator.keys().in, exchange.responder.keys().out);
  EXPECT_NE(exchange.initiator.keys().in, exchange.initiator.keys().out);
  Handshakes another;
  ASSERT_TRUE(another.run(kAsItIs));
  EXPECT_NE(another.initiator.keys().out, exchange.initiator.keys().out) << "keys are for one connection";
}

TEST(TcpHandshake, EveryFlippedBitEndsIt) {
  for (int message = 0; message < 4; ++message) {
    for (size_t bit = 0; bit < 8 * kLengths[message]; ++bit) {
      Handshakes exchange;
      ASSERT_FALSE(exchange.run([&](int number, Words& words) {
        if (number == message) words[bit / 8] = static_cast<uint8_t>(words[bit / 8] ^ 1 << bit % 8);
      })) << message
          << " bit " << bit;
    }
  }
}

TEST(TcpHandshake, AnotherKeyEndsItAtTheFirstWord) {
  Handshakes exchange;
  exchange.initiator = Initiator(fabric_secret({8}), {Lane::brief, Security::auth, kA, kB});
  EXPECT_FALSE(exchange.run(kAsItIs));
  EXPECT_EQ(exchange.responder.stage(), Stage::failed);
  EXPECT_NE(kSecret, Secret{7}) << "the token itself is never used";
}

TEST(TcpHandshake, WhatWasRecordedProvesNothing) {
  std::vector<Words> recorded;
  Handshakes genuine;
  ASSERT_TRUE(genuine.run([&](int, Words& words) { recorded.push_back(words); }));
  Responder again(kSecret, kB);
  again.take(recorded[0]);  // known to be of the job, but who says it?
  ASSERT_EQ(again.stage(), Stage::proof);
  again.take(recorded[2]);
  EXPECT_EQ(again.stage(), Stage::failed);
  Initiator fooled(kSecret, {Lane::bulk, Security::full, kA, kB});
  fooled.take(recorded[1]);
  EXPECT_EQ(fooled.stage(), Stage::failed);
}

// What a member says is given back to it, or to another one.
TEST(TcpHandshake, ReflectionsProveNothing) {
  Initiator initiator(kSecret, {Lane::brief, Security::auth, kA, kB});
  const Words greeting = initiator.greet();
  Responder mirror(kSecret, kA);
  const Words challenge = mirror.take(greeting);
  ASSERT_EQ(mirror.stage(), Stage::proof);
  initiator.take(challenge);
  EXPECT_EQ(initiator.stage(), Stage::failed);
  EXPECT_TRUE(initiator.met_another());
  Initiator echoed(kSecret, {Lane::brief, Security::auth, kA, kB});
  Words first = echoed.greet();
  first.resize(kChallengeBytes);
  echoed.take(first);
  EXPECT_EQ(echoed.stage(), Stage::failed);
}

TEST(TcpHandshake, WrongLengthsEndIt) {
  for (size_t bytes = 0; bytes < 2 * kGreetingBytes; ++bytes) {
    if (bytes == kGreetingBytes) continue;
    Responder responder(kSecret, kB);
    if (bytes < kProofBytes) continue;  // nobody calls it with less than it wants
    responder.take(Words(bytes, 1));
    EXPECT_EQ(responder.stage(), Stage::failed) << bytes;
  }
}

Place place_of(std::initializer_list<uint8_t> ip, uint8_t bits, uint16_t port = 99) {
  Place place;
  std::copy(ip.begin(), ip.end(), place.ip.begin());
  place.is_v6 = ip.size() == 16;
  place.network_bits = bits;
  place.port = port;
  return place;
}

const Place kV6 = place_of({0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}, 64);

TEST(TcpAddress, ComesBackAndIsCheckedWhole) {
  EndpointAddress address;
  address.id = kA;
  address.places = {place_of({10, 0, 0, 1}, 24, 65535), kV6};
  const auto bytes = address.encode();
  const auto back = EndpointAddress::decode(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->id, kA);
  EXPECT_EQ(back->places, address.places);
  for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(EndpointAddress::decode(Bytes(bytes).first(cut)));
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto changed = bytes;
    changed[bit / 8] = static_cast<uint8_t>(changed[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(EndpointAddress::decode(changed)) << bit;
  }
  address.places.clear();
  EXPECT_FALSE(EndpointAddress::decode(address.encode())) << "nowhere";
  address.places.assign(kMaxPlaces + 1, kV6);
  EXPECT_FALSE(EndpointAddress::decode(address.encode())) << "everywhere";
}

TEST(TcpAddress, NearPlacesAreTriedFirstAndOwnOnesLast) {
  const std::vector<Place> own{place_of({10, 1, 2, 3}, 20), place_of({172, 17, 0, 1}, 16)};
  const Place bridge = place_of({172, 17, 0, 1}, 16), far = place_of({10, 1, 99, 3}, 20), v6 = kV6;
  const Place near = place_of({10, 1, 15, 9}, 20);
  std::vector<Place> places{bridge, far, v6, near};
  order_by_reach(places, own);
  EXPECT_EQ(places, (std::vector<Place>{near, far, v6, bridge}));
  std::vector<Place> no_network{place_of({10, 1, 2, 9}, 0)};
  order_by_reach(no_network, own);
  EXPECT_EQ(no_network.size(), 1U);
}

}  // namespace
}  // namespace offpath::fabric::tcp
