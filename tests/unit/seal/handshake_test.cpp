// SPDX-License-Identifier: BSD-3-Clause
// The handshake, without sockets: whoever does not know the key gets nowhere, whatever he repeats, reflects or changes.
#include "seal/handshake.hpp"

#include <gtest/gtest.h>

#include <random>

namespace offpath::seal {
namespace {

const Secret kSecret = secret_for(Use::fabric, Key{7});
constexpr PartyId kA{1}, kB{2};

struct Exchange {
  Initiator initiator{kSecret, Greeting{1, Security::encrypt, kA, kB}};
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
    words = responder.judge(Verdict::accepted, Security::encrypt);
    change(3, words);
    initiator.take(words);
    return initiator.stage() == Stage::done;
  }
};

constexpr auto kAsItIs = [](int, Words&) {};
constexpr size_t kLengths[] = {kGreetingBytes, kChallengeBytes, kProofBytes, kVerdictBytes};

TEST(Handshake, BothLearnWhoTheOtherIsAndHaveTheSameKeys) {
  Exchange exchange;
  ASSERT_TRUE(exchange.run([](int number, Words& words) { EXPECT_EQ(words.size(), kLengths[number]); }));
  const Greeting& greeting = exchange.responder.greeting();
  EXPECT_EQ(greeting.from, kA);
  EXPECT_EQ(greeting.to, kB);
  EXPECT_EQ(greeting.wish, 1);
  EXPECT_EQ(greeting.security, Security::encrypt);
  EXPECT_EQ(exchange.initiator.verdict(), Verdict::accepted);
  EXPECT_EQ(exchange.initiator.session().out, exchange.responder.session().in);
  EXPECT_EQ(exchange.initiator.session().in, exchange.responder.session().out);
  EXPECT_NE(exchange.initiator.session().in, exchange.initiator.session().out);
  EXPECT_EQ(exchange.initiator.session().suite, exchange.responder.session().suite);
  Exchange another;
  ASSERT_TRUE(another.run(kAsItIs));
  EXPECT_NE(another.initiator.session().out, exchange.initiator.session().out) << "keys are for one connection";
}

// Not every processor has AES.
TEST(Handshake, TheSuiteIsOneThatBothKnow) {
  constexpr uint32_t kChacha = 1, kBoth = 3;
  const Greeting greeting{1, Security::auth, kA, kB};
  for (const uint32_t own : {kChacha, kBoth}) {
    for (const uint32_t other : {kChacha, kBoth}) {
      Exchange exchange{Initiator(kSecret, greeting, own), Responder(kSecret, kB, other)};
      ASSERT_TRUE(exchange.run(kAsItIs)) << own << other;
      EXPECT_EQ(exchange.initiator.session().suite, best_of(own & other)) << own << other;
      EXPECT_EQ(exchange.responder.session().suite, best_of(own & other)) << own << other;
    }
  }
}

TEST(Handshake, EveryFlippedBitEndsIt) {
  for (int message = 0; message < 4; ++message) {
    for (size_t bit = 0; bit < 8 * kLengths[message]; ++bit) {
      Exchange exchange;
      ASSERT_FALSE(exchange.run([&](int number, Words& words) {
        if (number == message) words[bit / 8] = static_cast<uint8_t>(words[bit / 8] ^ 1 << bit % 8);
      })) << message
          << " bit " << bit;
    }
  }
}

TEST(Handshake, AnotherKeyEndsItAtTheFirstWord) {
  Exchange exchange;
  exchange.initiator = Initiator(secret_for(Use::fabric, Key{8}), {0, Security::auth, kA, kB});
  EXPECT_FALSE(exchange.run(kAsItIs));
  EXPECT_EQ(exchange.responder.stage(), Stage::failed);
  EXPECT_NE(kSecret, Secret{7}) << "the token itself is never used";
}

TEST(Handshake, WhatWasRecordedProvesNothing) {
  std::vector<Words> recorded;
  Exchange genuine;
  ASSERT_TRUE(genuine.run([&](int, Words& words) { recorded.push_back(words); }));
  Responder again(kSecret, kB);
  again.take(recorded[0]);  // known to be of the job, but who says it?
  ASSERT_EQ(again.stage(), Stage::proof);
  again.take(recorded[2]);
  EXPECT_EQ(again.stage(), Stage::failed);
  Initiator fooled(kSecret, {1, Security::encrypt, kA, kB});
  fooled.take(recorded[1]);
  EXPECT_EQ(fooled.stage(), Stage::failed);
}

// What a member says is given back to it, or to another one.
TEST(Handshake, ReflectionsProveNothing) {
  Initiator initiator(kSecret, {0, Security::auth, kA, kB});
  const Words greeting = initiator.greet();
  Responder mirror(kSecret, kA);
  const Words challenge = mirror.take(greeting);
  ASSERT_EQ(mirror.stage(), Stage::proof);
  initiator.take(challenge);
  EXPECT_EQ(initiator.stage(), Stage::failed);
  EXPECT_TRUE(initiator.met_another());
  Initiator echoed(kSecret, {0, Security::auth, kA, kB});
  Words first = echoed.greet();
  first.resize(kChallengeBytes);
  echoed.take(first);
  EXPECT_EQ(echoed.stage(), Stage::failed);
}

TEST(Handshake, WrongLengthsEndIt) {
  for (size_t bytes = 0; bytes < 2 * kGreetingBytes; ++bytes) {
    if (bytes == kGreetingBytes) continue;
    Responder responder(kSecret, kB);
    if (bytes < kProofBytes) continue;  // nobody calls it with less than it wants
    responder.take(Words(bytes, 1));
    EXPECT_EQ(responder.stage(), Stage::failed) << bytes;
  }
}

// A device does not know who listens, but that it knows the key.
TEST(Handshake, WhoeverKnowsTheKeyMayBeWanted) {
  Exchange exchange;
  exchange.initiator = Initiator(kSecret, {7, Security::auth, kA, {}});
  ASSERT_TRUE(exchange.run(kAsItIs));
  EXPECT_EQ(exchange.responder.greeting().wish, 7);
  EXPECT_NE(secret_for(Use::device, Key{7}), kSecret) << "a key has a use";
}

}  // namespace
}  // namespace offpath::seal
