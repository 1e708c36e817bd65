// SPDX-License-Identifier: BSD-3-Clause
// Every codec with every filter: what was written is read again, whatever it was and however long; what was damaged, cut
// or made up is refused or means as many bytes as it should, and nothing behind them is touched.
#include "data.hpp"
#include "kernels/codecs/coding.hpp"
#include "kernels/codecs/shuffle.hpp"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

using namespace codecs;

std::vector<Method> lossless_methods() {
  std::vector<Method> out;
  for (const CodecId codec : kCodecs) {
    for (const uint8_t width : {1, 2, 4, 8}) out.push_back({codec, width, 0});
    out.push_back({codec, 1, 9});
  }
  return out;
}

class Codecs : public ::testing::TestWithParam<Method> {
 protected:
  std::vector<uint8_t> encode(const std::vector<uint8_t>& in) {
    std::vector<uint8_t> out(in.size() + in.size() / 8 + 256);
    out.resize(coding.encode(GetParam(), in, out));
    return out;
  }
  Coding coding;
};

TEST_P(Codecs, WhatIsWrittenIsReadAgain) {
  for (const size_t bytes : {1, 2, 7, 8, 9, 63, 64, 1000, 4096, 56 << 10, (1 << 20) + 3}) {
    for (const auto& data :
         {text_bytes(bytes), random_bytes(bytes), smooth_doubles(bytes), std::vector<uint8_t>(bytes)}) {
      const auto coded = encode(data);
      ASSERT_FALSE(coded.empty()) << bytes;
      std::vector<uint8_t> again(bytes, 0xAA);
      ASSERT_TRUE(coding.decode(GetParam(), coded, again)) << bytes;
      ASSERT_EQ(again, data) << bytes;
    }
  }
}

TEST_P(Codecs, WhatHasNoRoomIsNotWritten) {
  const auto data = random_bytes(4096);
  std::vector<uint8_t> out(4096, 0xEE);
  EXPECT_EQ(coding.encode(GetParam(), data, Room(out).first(3900)), 0U);
  for (size_t i = 3900; i < out.size(); ++i) ASSERT_EQ(out[i], 0xEE);
  EXPECT_EQ(coding.encode(GetParam(), Bytes(), out), 0U);
}

TEST_P(Codecs, AnotherLengthIsRefused) {
  const auto data = text_bytes(5000);
  const auto coded = encode(data);
  for (const size_t bytes : {0, 1, 4999, 5001, 10000}) {
    std::vector<uint8_t> out(bytes);
    EXPECT_FALSE(coding.decode(GetParam(), coded, out)) << bytes;
  }
}

TEST_P(Codecs, DamagedInputIsRefusedOrStaysInside) {
  std::mt19937_64 random(3);
  const auto data = smooth_doubles(2000);
  const auto coded = encode(data);
  constexpr size_t kGuard = 512;
  size_t undetected = 0;
  for (int run = 0; run < 2000; ++run) {
    auto bad = coded;
    for (uint64_t hits = 1 + random() % 4; hits > 0; --hits)
      bad[random() % bad.size()] = static_cast<uint8_t>(random());
    if (run % 3 == 0) bad.resize(random() % bad.size());
    if (run % 7 == 0) bad = random_bytes(random() % 300, random());
    bad.shrink_to_fit();
    std::vector<uint8_t> out(data.size() + kGuard, 0xEE);
    const Room room = Room(out).first(data.size());
    const bool whole = coding.decode(GetParam(), bad, room);
    undetected +=
        whole && !std::equal(room.begin(), room.end(), data.begin()) && checksum(room) == checksum(data) ? 1 : 0;
    for (size_t i = data.size(); i < out.size(); ++i) ASSERT_EQ(out[i], 0xEE) << run;
  }
  EXPECT_EQ(undetected, 0U);
  std::vector<uint8_t> again(data.size());
  EXPECT_TRUE(coding.decode(GetParam(), coded, again)) << "damaged input spoils what is kept";
  EXPECT_EQ(again, data);
}

TEST_P(Codecs, WhatIsNotKeptMakesNoDifference) {
  Coding anew(Keep::nothing);
  const auto data = smooth_doubles(10000);
  std::vector<uint8_t> out(12000), again(data.size());
  for (int i = 0; i < 3; ++i) {
    const size_t bytes = anew.encode(GetParam(), data, out);
    EXPECT_EQ(bytes, encode(data).size());
    ASSERT_TRUE(anew.decode(GetParam(), Bytes(out).first(bytes), again));
    ASSERT_EQ(again, data);
  }
}

TEST_P(Codecs, AMethodIsReadAsItIsWritten) {
  const auto wish = parse_wish(text_of(GetParam()));
  ASSERT_TRUE(wish.ok()) << wish.status().text();
  EXPECT_EQ(wish.value(), (Wish{false, GetParam()}));
}

INSTANTIATE_TEST_SUITE_P(All, Codecs, ::testing::ValuesIn(lossless_methods()), [](const auto& tested) {
  return std::string(name_of(tested.param.codec)) + "_" + std::to_string(tested.param.width) + "_" +
         std::to_string(tested.param.level);
});

TEST(Shuffle, SortsBytesByTheirPlace) {
  const std::vector<uint8_t> in{0, 1, 2, 3, 10, 11, 12, 13, 99};
  std::vector<uint8_t> out(in.size()), again(in.size());
  shuffle(in.data(), out.data(), in.size(), 4);
  EXPECT_EQ(out, (std::vector<uint8_t>{0, 10, 1, 11, 2, 12, 3, 13, 99}));
  unshuffle(out.data(), again.data(), in.size(), 4);
  EXPECT_EQ(again, in);
}

TEST(Shuffle, PaysForNumbers) {
  Coding coding;
  const auto data = smooth_doubles(56 << 10);
  std::vector<uint8_t> out(data.size() + 1024);
  const size_t plain = coding.encode({CodecId::zstd, 1, 0}, data, out);
  const size_t sorted = coding.encode({CodecId::zstd, 8, 0}, data, out);
  EXPECT_LT(sorted, plain * 9 / 10);
}

TEST(Coding, UnknownMethodsAreRefused) {
  Coding coding;
  std::vector<uint8_t> in(100), out(200);
  for (const uint8_t codec : {0, 30, 77, 255}) {
    EXPECT_EQ(coding.encode({static_cast<CodecId>(codec), 1, 0}, in, out), 0U);
    EXPECT_FALSE(coding.decode({static_cast<CodecId>(codec), 1, 0}, in, out));
  }
  for (const uint8_t width : {0, 3, 16, 255}) EXPECT_FALSE(coding.decode({CodecId::lz4, width, 0}, in, out));
}

TEST(Wishes, AreReadOrRefused) {
  EXPECT_TRUE(parse_wish("off")->is_off());
  EXPECT_TRUE(parse_wish("auto")->decides_itself);
  EXPECT_TRUE(parse_wish("sample")->samples);
  EXPECT_EQ(parse_wish("zstd:level=3,shuffle=8")->method, (Method{CodecId::zstd, 8, 3}));
  for (const char* text : {"",
                           "on",
                           "gzip",
                           "zstd:",
                           "zstd:level",
                           "zstd:level=",
                           "zstd:level=0",
                           "zstd:level=23",
                           "lz4:shuffle=3",
                           "lz4:shuffle=-8",
                           "off:level=1",
                           "auto:level=1",
                           "none",
                           "lz4:level=1x",
                           "lz4:,",
                           "lz4:abs=1",
                           "lz4:reductions",
                           "zfp",
                           "zfp:abs=0",
                           "zfp:abs=-1",
                           "zfp:abs=inf",
                           "zfp:abs=nan",
                           "zfp:rel=1",
                           "zfp:abs=1,rel=0.1",
                           "zfp:abs=1,abs=1",
                           "zfp:level=1",
                           "zfp:reductions",
                           "zfp:abs=1e-400",
                           "zfp:abs=1,reductions,reductions",
                           "sz3:abs=1x"}) {
    const auto wish = parse_wish(text);
    ASSERT_FALSE(wish.ok()) << text;
    EXPECT_NE(std::string(wish.status().text()).find("Use one of off, auto, sample, lz4"), std::string::npos);
  }
}

}  // namespace
}  // namespace offpath::testing
