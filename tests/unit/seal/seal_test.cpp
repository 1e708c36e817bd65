// SPDX-License-Identifier: BSD-3-Clause
// Seals: what was changed, repeated, left out or moved does not open; in both suites, hidden or not.
#include "seal/job_key.hpp"
#include "seal/seal.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace offpath::seal {
namespace {

constexpr Key kKey{1, 2, 3};
constexpr Security kSecurities[] = {Security::auth, Security::encrypt, Security::user_data_unprotected};

struct Sealed {
  std::vector<uint8_t> bytes;
  std::array<uint8_t, kTagBytes> tag{};
};

std::vector<uint8_t> pattern(size_t bytes) {
  std::vector<uint8_t> out(bytes);
  std::iota(out.begin(), out.end(), uint8_t{3});
  return out;
}

Sealed sealed(Sealer& sealer, const std::vector<uint8_t>& bytes) {
  Sealed out{std::vector<uint8_t>(bytes.size())};
  sealer.seal(bytes, out.bytes.data(), out.tag.data());
  return out;
}

class Seals : public ::testing::TestWithParam<Suite> {
 protected:
  void SetUp() override {
    if ((known_suites() & static_cast<uint32_t>(GetParam())) == 0) GTEST_SKIP() << "this processor has it not";
  }
};

TEST_P(Seals, WhatWasSealedOpensInItsOrder) {
  for (const Security security : kSecurities) {
    Sealer sealer(kKey, GetParam(), security);
    Opener opener(kKey, GetParam(), security);
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{104}, size_t{70000}}) {
      const auto plain = pattern(bytes);
      Sealed next = sealed(sealer, plain);
      EXPECT_EQ(bytes > 14 && next.bytes != plain, bytes > 14 && security == Security::encrypt);
      ASSERT_TRUE(opener.open(next.bytes, next.tag.data())) << bytes;
      EXPECT_EQ(next.bytes, plain);
    }
  }
}

TEST_P(Seals, NothingElseOpens) {
  for (const Security security : kSecurities) {
    Sealer sealer(kKey, GetParam(), security);
    const Sealed first = sealed(sealer, pattern(40)), second = sealed(sealer, pattern(40));
    const auto opens = [&](Sealed what, uint64_t number, const Key& key = kKey) {
      Opener opener(key, GetParam(), security);
      opener.go_back_to(number);
      return opener.open(what.bytes, what.tag.data());
    };
    EXPECT_TRUE(opens(first, 0) && opens(second, 1));
    EXPECT_FALSE(opens(first, 1)) << "twice";
    EXPECT_FALSE(opens(second, 0)) << "one left out";
    EXPECT_FALSE(opens(first, 0, Key{9})) << "another connection";
    for (size_t bit = 0; bit < 8 * (40 + kTagBytes); ++bit) {
      Sealed changed = first;
      uint8_t& byte = bit / 8 < 40 ? changed.bytes[bit / 8] : changed.tag[bit / 8 - 40];
      byte = static_cast<uint8_t>(byte ^ 1 << bit % 8);
      EXPECT_FALSE(opens(changed, 0)) << bit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Seals, ::testing::Values(Suite::chacha, Suite::aes),
                         [](const auto& test) { return test.param == Suite::aes ? "aes" : "chacha"; });

TEST(Security, NamesAreReadAndOthersRefused) {
  EXPECT_EQ(parse_security("").value(), Security::auth);
  EXPECT_EQ(parse_security("full").value(), Security::auth) << "as stable as the others (docs/stability.md)";
  for (const Security security : kSecurities) EXPECT_EQ(parse_security(name_of(security)).value(), security);
  for (const char* text : {"none", "AUTH", "auth,full", "auth "}) EXPECT_FALSE(parse_security(text).ok()) << text;
}

// Who has seen the token, and names of jobs, has no key of a job with a secret.
TEST(JobKey, IsMadeOfTokenAndSecret) {
  const Key token{7};
  const auto key = job_key(token, "sixteen letters!");
  ASSERT_TRUE(key.ok()) << key.status().text();
  EXPECT_EQ(job_key(token, "").value(), token);
  EXPECT_EQ(key.value(), job_key(token, "sixteen letters!").value());
  EXPECT_NE(key.value(), token);
  EXPECT_NE(key.value(), job_key(Key{8}, "sixteen letters!").value());
  EXPECT_NE(key.value(), job_key(token, "sixteen letters?").value());
  EXPECT_NE(name_of_job(key.value()), name_of_job(token));
  EXPECT_EQ(job_key(token, "fifteen letters").status().code(), OFFPATH_ERR_ARGUMENT);
}

}  // namespace
}  // namespace offpath::seal
