// SPDX-License-Identifier: BSD-3-Clause
// Datagrams that are refused because anything about them is wrong; and the pace.
#include "fabric/multicast/datagram.hpp"
#include "fabric/multicast/pace.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace offpath::fabric::multicast {
namespace {

using Data = std::vector<uint8_t>;

constexpr Secret kSecret = {1, 2, 3};
constexpr TeamId kTeam = {4, 5};
const Data kChunk = {10, 20, 30, 40, 50};

Keys keys(bool encrypts = false, const Secret& secret = kSecret, const TeamId& team = kTeam, uint32_t senders = 8) {
  return Keys(secret, team, senders, encrypts);
}

Data sealed(const Label& label, bool encrypts = false, Seal seal = Seal::chacha) {
  Data out(kChunk.size() + kAroundBytes);
  keys(encrypts).seal(label, kChunk, out.data(), seal);
  return out;
}

struct Kind {
  bool encrypts;
  Seal seal;
};
std::vector<Kind> kinds() {
  std::vector<Kind> out{{false, Seal::chacha}, {true, Seal::chacha}};
  const bool aes = (seal::known_suites() & static_cast<uint32_t>(Seal::aes)) != 0;
  if (aes) out.insert(out.end(), {{false, Seal::aes}, {true, Seal::aes}});
  return out;
}

TEST(MulticastDatagram, ComesOutAsItWentIn) {
  const Label labels[] = {{0, 0, 0}, {77, 5, 3}, {kProbe | 1, UINT32_MAX, 7}};
  for (const auto& [encrypts, seal] : kinds()) {
    for (const Label& label : labels) {
      Data datagram = sealed(label, encrypts, seal);
      const bool readable =
          std::search(datagram.begin(), datagram.end(), kChunk.begin(), kChunk.end()) != datagram.end();
      EXPECT_EQ(readable, !encrypts);
      const auto opened = keys(encrypts).open(datagram);
      ASSERT_TRUE(opened);
      EXPECT_EQ(opened->label, label);
      EXPECT_TRUE(std::equal(opened->chunk.begin(), opened->chunk.end(), kChunk.begin(), kChunk.end()));
    }
  }
}

TEST(MulticastDatagram, IsRefusedWithAnyBitChangedOrAnyLengthMissing) {
  for (const auto& [encrypts, seal] : kinds()) {
    const Data whole = sealed({77, 5, 3}, encrypts, seal);
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      Data changed = whole;
      changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      EXPECT_FALSE(keys(encrypts).open(changed)) << bit;
    }
    for (size_t length = 0; length < whole.size(); ++length) {
      Data shorter(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_FALSE(keys(encrypts).open(shorter)) << length;
    }
    Data longer = whole;
    longer.push_back(0);
    EXPECT_FALSE(keys(encrypts).open(longer));
  }
}

TEST(MulticastDatagram, IsRefusedByOtherJobsTeamsAndSecurities) {
  const auto opens = [](Keys by) {
    size_t opened = 0;
    for (const auto& [encrypts, seal] : kinds()) {
      Data datagram = sealed({77, 5, 3}, false, seal);
      opened += by.open(datagram).has_value() ? 1 : 0;
    }
    EXPECT_TRUE(opened == 0 || opened == kinds().size());
    return opened > 0;
  };
  EXPECT_FALSE(opens(keys(false, {9})));
  EXPECT_FALSE(opens(keys(false, kSecret, {9})));
  EXPECT_FALSE(opens(keys(true)));
  EXPECT_FALSE(opens(keys(false, kSecret, kTeam, 3)));  // there is no sender of that number
  EXPECT_TRUE(opens(keys()));
}

TEST(MulticastPace, KeepsToItsRateAndSavesUpOneBurst) {
  Pace pace(0.5, 1000);
  EXPECT_EQ(pace.wait_ns(5'000'000), 0u);
  pace.spend(3000);
  const uint64_t wait = pace.wait_ns(5'000'000);
  EXPECT_NEAR(static_cast<double>(wait), 4000, 2);
  EXPECT_GT(pace.wait_ns(5'000'000 + wait / 2), 0u);
  EXPECT_EQ(pace.wait_ns(5'000'000 + wait + 2), 0u);
  EXPECT_EQ(pace.wait_ns(900'000'000), 0u);
  pace.spend(1500);  // a second has not saved up more than the burst
  EXPECT_GT(pace.wait_ns(900'000'000), 900u);
  Pace unbounded(0, 0);
  unbounded.spend(1e9);
  EXPECT_EQ(unbounded.wait_ns(1), 0u);
}

}  // namespace
}  // namespace offpath::fabric::multicast
