// SPDX-License-Identifier: BSD-3-Clause
// Lossy codecs: what arrives is as near as was asked for, and exactly what its sender says it is; what cannot be so near is not
// coded. What comes is hostile, as for the others.
#include "data.hpp"
#include "kernels/codecs/coding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace offpath::testing {
namespace {

using namespace codecs;

std::vector<Method> lossy_methods() {
  std::vector<Method> out;
  for (const CodecId codec : kNumberCodecs) {
    if (!is_built(codec)) continue;
    for (const Bound bound : {Bound{BoundKind::absolute, 1e-6}, Bound{BoundKind::relative, 1e-4}}) {
      for (const Elements elements : {Elements::float32, Elements::float64})
        out.push_back({codec, 1, 0, bound, elements});
    }
  }
  return out;
}

template <class T>
std::vector<uint8_t> bytes_of_numbers(const std::vector<T>& values) {
  std::vector<uint8_t> out(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::vector<double> numbers_of(Bytes bytes, Elements elements) {
  std::vector<double> out(bytes.size() / bytes_of(elements));
  for (size_t i = 0; i < out.size(); ++i) {
    float single;
    if (elements == Elements::float32) {
      std::memcpy(&single, bytes.data() + 4 * i, 4);
      out[i] = static_cast<double>(single);
    } else {
      std::memcpy(&out[i], bytes.data() + 8 * i, 8);
    }
  }
  return out;
}

std::vector<uint8_t> as_bytes(const std::vector<double>& values, Elements elements) {
  if (elements == Elements::float64) return bytes_of_numbers(values);
  return bytes_of_numbers(std::vector<float>(values.begin(), values.end()));
}

std::vector<double> waves(size_t count) {
  std::vector<double> out(count);
  for (size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i) * 0.01;
    out[i] = 3 * std::sin(x) * std::cos(0.3 * x) + 1e-3 * std::sin(41 * x);
  }
  return out;
}

class Lossy : public ::testing::TestWithParam<Method> {
 protected:
  std::vector<uint8_t> encode(const std::vector<uint8_t>& in) {
    std::vector<uint8_t> out(2 * in.size() + 256);
    loss = {};
    out.resize(coding.encode(GetParam(), in, out, &loss));
    return out;
  }
  std::vector<uint8_t> data(const std::vector<double>& values) const { return as_bytes(values, GetParam().elements); }
  double allowed(const std::vector<double>& values) const {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return GetParam().bound.value * (GetParam().bound.kind == BoundKind::relative ? *most - *least : 1);
  }
  Coding coding;
  Loss loss;
};

TEST_P(Lossy, NoNumberIsFurtherOffThanWasAllowed) {
  for (const size_t count :
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 129, 1000, 7168, 65'537}) {
    const auto in = data(waves(count));
    const auto coded = encode(in);
    ASSERT_FALSE(coded.empty()) << count;
    std::vector<uint8_t> again(in.size(), 0xAA);
    ASSERT_TRUE(coding.decode(GetParam(), coded, again)) << count;
    EXPECT_EQ(checksum(again), loss.check);
    const auto before = numbers_of(in, GetParam().elements), after = numbers_of(again, GetParam().elements);
    double largest = 0;
    for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(after[i] - before[i]));
    EXPECT_EQ(largest, loss.largest_error) << count;
    EXPECT_LE(largest, std::max(allowed(before), 1e-300)) << count;
    EXPECT_TRUE(count != 7168 || coded.size() < in.size() * 3 / 4) << coded.size();
  }
}

TEST_P(Lossy, ConstantsAndNoiseAreWithinTheBoundOrLeftAlone) {
  std::mt19937_64 random(1);
  std::vector<double> noise(1000), wide(1000);
  for (size_t i = 0; i < noise.size(); ++i) {
    noise[i] = static_cast<double>(random()) / 1e19;
    wide[i] = std::ldexp(noise[i], static_cast<int>(random() % 200) - 100);
  }
  for (const auto& values : {std::vector<double>(1000, 0.0), std::vector<double>(1000, -1.7), noise, wide}) {
    const auto in = data(values);
    const auto coded = encode(in);
    if (coded.empty()) continue;
    std::vector<uint8_t> again(in.size());
    ASSERT_TRUE(coding.decode(GetParam(), coded, again));
    EXPECT_EQ(checksum(again), loss.check);
    EXPECT_LE(loss.largest_error, std::max(allowed(numbers_of(in, GetParam().elements)), 1e-300));
  }
  EXPECT_LT(encode(data(std::vector<double>(1000, 0.0))).size(), 1000U) << "of nothing but zeros";
}

TEST_P(Lossy, WhatIsNoFiniteNumberIsLeftAlone) {
  for (const double odd : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    for (const size_t at : {0, 500, 999}) {
      auto values = waves(1000);
      values[at] = odd;
      EXPECT_TRUE(encode(data(values)).empty());
    }
  }
}

TEST_P(Lossy, WhatIsNotWholeNumbersIsLeftAlone) {
  auto in = data(waves(100));
  in.pop_back();
  EXPECT_TRUE(encode(in).empty());
  Method unknown = GetParam();
  unknown.elements = Elements::unknown;
  std::vector<uint8_t> out(4096);
  EXPECT_EQ(coding.encode(unknown, data(waves(100)), out), 0U);
  EXPECT_EQ(coding.encode(GetParam(), data(waves(1000)), Room(out).first(40)), 0U) << "no room";
}

TEST_P(Lossy, DamagedInputIsRefusedOrStaysInside) {
  std::mt19937_64 random(3);
  const auto in = data(waves(250));
  const auto coded = encode(in);
  constexpr size_t kGuard = 512;
  for (int run = 0; run < 3000; ++run) {
    auto bad = coded;
    for (uint64_t hits = 1 + random() % 4; hits > 0; --hits) {
      const size_t at = run % 2 == 0 ? random() % std::min<size_t>(bad.size(), 24) : random() % bad.size();
      bad[at] = static_cast<uint8_t>(random());
    }
    if (run % 3 == 0) bad.resize(random() % bad.size());
    if (run % 7 == 0) bad = random_bytes(random() % 300, random());
    bad.shrink_to_fit();
    std::vector<uint8_t> out(in.size() + kGuard, 0xEE);
    coding.decode(GetParam(), bad, Room(out).first(in.size()));
    for (size_t i = in.size(); i < out.size(); ++i) ASSERT_EQ(out[i], 0xEE) << run;
  }
  std::vector<uint8_t> again(in.size());
  EXPECT_TRUE(coding.decode(GetParam(), coded, again)) << "damaged input spoils what is kept";
  EXPECT_EQ(checksum(again), loss.check);
}

TEST_P(Lossy, AnotherLengthIsRefused) {
  const auto coded = encode(data(waves(1000)));
  for (const size_t count : {0, 1, 900, 996, 1004, 1005, 4000}) {
    std::vector<uint8_t> out(count * bytes_of(GetParam().elements));
    EXPECT_FALSE(coding.decode(GetParam(), coded, out)) << count;
  }
}

TEST_P(Lossy, AMethodIsReadAsItIsWritten) {
  Method method = GetParam();
  method.elements = Elements::unknown;
  const auto wish = parse_wish(text_of(method) + ",reductions");
  ASSERT_TRUE(wish.ok()) << wish.status().text();
  EXPECT_EQ(wish.value(), (Wish{false, method, true}));
  EXPECT_EQ(wish->lossless(), (Wish{true, {}, false}));
  EXPECT_EQ(wish->for_numbers(GetParam().elements), GetParam());
}

std::string title(const ::testing::TestParamInfo<Method>& tested) {
  const Method& method = tested.param;
  return std::string(name_of(method.codec)) + (method.bound.kind == BoundKind::absolute ? "_abs" : "_rel") +
         (method.elements == Elements::float32 ? "_float" : "_double");
}
INSTANTIATE_TEST_SUITE_P(All, Lossy, ::testing::ValuesIn(lossy_methods()), title);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Lossy);  // in a build without these libraries

}  // namespace
}  // namespace offpath::testing
