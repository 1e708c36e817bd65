// SPDX-License-Identifier: BSD-3-Clause
// MemberAddress: golden bytes, and refusal of everything malformed.
#include "session/member_address.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <string>

namespace offpath::session {
namespace {

MemberAddress sample(size_t fabric_bytes) {
  MemberAddress address;
  std::iota(address.service.begin(), address.service.end(), uint8_t{0x10});
  address.worker = 0x01020304;
  address.fabric.resize(fabric_bytes);
  std::iota(address.fabric.begin(), address.fabric.end(), uint8_t{0});
  return address;
}

TEST(MemberAddress, GoldenBytes) {
  const std::vector<uint8_t> expected{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
                                      0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0x04, 0x03,
                                      0x02, 0x01, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02};
  const auto bytes = sample(3).encode();
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes.value(), expected);
}

TEST(MemberAddress, SurvivesTheRoundTripAlsoWithPadding) {
  for (const size_t fabric : {0, 1, 100, 1000}) {
    auto bytes = sample(fabric).encode();
    ASSERT_TRUE(bytes.ok());
    bytes->resize(OFFPATH_ADDRESS_MAX_BYTES);  // front ends carry them in slots of equal size
    const auto back = MemberAddress::decode(bytes.value());
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->service, sample(fabric).service);
    EXPECT_EQ(back->worker, 0x01020304U);
    EXPECT_EQ(back->fabric, sample(fabric).fabric);
  }
}

TEST(MemberAddress, TooLongOnesAreRefused) {
  EXPECT_TRUE(sample(1000).encode().ok());
  const auto refused = sample(1001).encode();
  EXPECT_EQ(refused.status().code(), OFFPATH_ERR_NO_SERVICE);
  EXPECT_NE(std::string(refused.status().text()).find("OFFPATH_UCX_NET_DEVICES"), std::string::npos);
}

TEST(MemberAddress, EveryTruncationIsRefused) {
  const auto bytes = sample(50).encode().value();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(MemberAddress::decode(std::span(bytes).first(length)).status().code(), OFFPATH_ERR_ARGUMENT) << length;
  }
}

TEST(MemberAddress, WildLengthIsRefused) {
  auto bytes = sample(50).encode().value();
  for (const uint32_t wild : {51U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFE8U, 0xFFFFFFFFU}) {
    memcpy(&bytes[20], &wild, sizeof(wild));
    EXPECT_EQ(MemberAddress::decode(bytes).status().code(), OFFPATH_ERR_ARGUMENT) << wild;
  }
}

TEST(MemberAddress, RandomBytesNeverCrash) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bytes(random() % 64);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    if (bytes.size() > 23 && random() % 2 == 0) bytes[21] = bytes[22] = bytes[23] = 0;
    const auto address = MemberAddress::decode(bytes);
    if (address.ok()) {
      EXPECT_LE(address->fabric.size() + 24, bytes.size());
    }
  }
}

}  // namespace
}  // namespace offpath::session
