// SPDX-License-Identifier: BSD-3-Clause
// The target without an engine: regions and short operations.
#include "onesided_target.hpp"

#include <algorithm>
#include <random>

namespace offpath::ops::onesided {
namespace {

TEST_F(OnesidedTarget, PutsAndGets) {
  open();
  EXPECT_EQ(ask(put(8, {1, 2, 3})).status.code(), OFFPATH_OK);
  EXPECT_EQ(memcmp(window() + 8, "\1\2\3", 3), 0);
  Body get = of_kind(OFFPATH_GET);
  get.offset = 7, get.bytes = 5;
  Answer answer = ask(get);
  EXPECT_EQ(answer.status.code(), OFFPATH_OK);
  EXPECT_EQ(answer.payload, std::vector<uint8_t>(window() + 7, window() + 12));
  get.contiguous = false;
  get.layout = {2, -3, {{1, 1}, {0, 1}}};  // backwards, twice
  answer = ask(get);
  EXPECT_EQ(answer.payload, (std::vector<uint8_t>{window()[8], window()[7], window()[5], window()[4], window()[2]}));
}

TEST_F(OnesidedTarget, Accumulates) {
  open();
  const uint64_t old = value_at(16);
  EXPECT_EQ(ask(sum(16, 16, 5)).status.code(), OFFPATH_OK);
  EXPECT_EQ(value_at(16), old + 5);
  Body fetch = sum(16, 8, 3);
  fetch.kind = OFFPATH_GET_ACCUMULATE;
  Answer answer = ask(fetch);
  uint64_t fetched = 0;
  ASSERT_EQ(answer.payload.size(), 8U);
  memcpy(&fetched, answer.payload.data(), 8);
  EXPECT_EQ(fetched, old + 5);
  EXPECT_EQ(value_at(16), old + 8);
  fetch.reduction.op = OFFPATH_OP_NO_OP, fetch.data.clear();
  EXPECT_EQ(ask(fetch).payload.size(), 8U);
  EXPECT_EQ(value_at(16), old + 8);
  Body swap = of_kind(OFFPATH_COMPARE_AND_SWAP);
  swap.reduction.element = OFFPATH_ELEMENT_U64;
  swap.offset = 16, swap.bytes = 8;
  swap.data.assign(16, 0);
  swap.data[0] = 9;
  EXPECT_EQ(ask(swap).payload.size(), 8U);
  EXPECT_EQ(value_at(16), old + 8) << "not what it was compared with";
  const uint64_t now = old + 8;
  memcpy(&swap.data[8], &now, 8);
  EXPECT_EQ(ask(swap).payload.size(), 8U);
  EXPECT_EQ(value_at(16), 9U);
}

TEST_F(OnesidedTarget, NothingOutsideTheWindowIsTouched) {
  EXPECT_EQ(ask(put(0, {1})).status.code(), OFFPATH_ERR_RANGE) << "not open";
  open();
  const auto refused = [&](Body wanted) { EXPECT_EQ(ask(wanted).status.code(), OFFPATH_ERR_RANGE); };
  for (const uint64_t offset : {uint64_t{kBytes}, uint64_t{kBytes - 1}, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 1,
                                uint64_t{0} - kBytes, uint64_t{0} - base()}) {
    refused(put(offset, {1, 2}));
    refused(sum(offset, 8));
    refused(sum(offset, 8 << 10));
    Body get = of_kind(OFFPATH_GET);
    get.offset = offset, get.bytes = 4096;
    refused(get);
  }
  const auto strided = [&](uint64_t offset, graph::Layout layout, size_t bytes) {
    Body wanted = put(offset, std::vector<uint8_t>(bytes, 9));
    wanted.contiguous = false;
    wanted.layout = std::move(layout);
    return wanted;
  };
  refused(strided(0, {1, 1, {{-1, 1}}}, 1));
  refused(strided(0, {2, 1, {{0, 1}, {kBytes, 1}}}, 2));
  refused(strided(0, {1, kBytes / 2, {{0, 1}}}, 3));
  refused(strided(kBytes - 1, {1, -int64_t{kBytes / 2}, {{0, 1}}}, 3));
  refused(strided(0, {1, INT64_MAX, {{0, 1}}}, 1000));
  refused(strided(0, {1, INT64_MIN, {{0, 1}}}, 1000));
  refused(strided(UINT64_MAX, {1, 0, {{INT64_MAX, 1}}}, 1));
  refused(strided(0, {2, 0, {{INT64_MIN, 1}, {0, 1}}}, 2));
  EXPECT_TRUE(untouched());
  // The last element need not be whole: only what is named counts.
  EXPECT_EQ(ask(strided(kBytes - 2, {4, 8, {{0, 2}, {100, 2}}}, 2)).status.code(), OFFPATH_OK);
  EXPECT_EQ(ask(put(kBytes - 1, {1})).status.code(), OFFPATH_OK);
  EXPECT_EQ(ask(put(12345, {})).status.code(), OFFPATH_OK) << "names no byte";
  // Others' windows and teams.
  EXPECT_EQ(target_.on_request(kClient + 1, kTeam, 0, ++last_, memory_, encode(put(0, {1}))).status.code(),
            OFFPATH_ERR_RANGE);
  EXPECT_EQ(target_.on_request(kClient, kTeam + 1, 0, ++last_, memory_, encode(put(0, {1}))).status.code(),
            OFFPATH_ERR_RANGE);
}

// Against a reference that looks at each byte.
TEST_F(OnesidedTarget, RandomPlacesStayInside) {
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, 0, 0, true).ok());
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto some = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  // Regions next to each other, and further apart.
  bool attached[kBytes] = {};
  for (uint64_t at = 0; at < kBytes;) {
    const uint64_t bytes = std::min(static_cast<uint64_t>(some(1, 30)), kBytes - at);
    ASSERT_TRUE(target_.attach(kClient, kTeam, kWindow, base() + at, bytes).ok());
    std::fill_n(attached + at, bytes, true);
    at += bytes + static_cast<uint64_t>(std::max(some(-3, 5), int64_t{0}));
  }
  int allowed = 0;
  for (int round = 0; round < 5000; ++round) {
    memcpy(before_, space_, sizeof(space_));
    Body wanted = put(static_cast<uint64_t>(some(0, kBytes)), std::vector<uint8_t>(static_cast<size_t>(some(1, 40))));
    for (uint8_t& byte : wanted.data) byte = static_cast<uint8_t>(random());
    wanted.contiguous = round % 8 == 0;
    wanted.layout.extent_bytes = wanted.contiguous ? 9 : some(-30, 30);
    for (int64_t left = wanted.contiguous ? 1 : some(1, 4); left > 0; --left) {
      wanted.layout.ranges.push_back(
          wanted.contiguous ? memory::Range{0, 9} : memory::Range{some(-20, 20), static_cast<uint64_t>(some(0, 9))});
      wanted.layout.size_bytes += wanted.layout.ranges.back().bytes;
    }
    if (wanted.layout.size_bytes == 0) continue;
    bool inside = true;
    std::vector<int64_t> places;
    for (int64_t element = 0; places.size() < wanted.bytes; ++element) {
      for (const memory::Range& range : wanted.layout.ranges) {
        for (uint64_t i = 0; i < range.bytes && places.size() < wanted.bytes; ++i) {
          places.push_back(static_cast<int64_t>(wanted.offset) + element * wanted.layout.extent_bytes + range.offset +
                           static_cast<int64_t>(i));
          inside =
              inside && places.back() >= 0 && places.back() < static_cast<int64_t>(kBytes) && attached[places.back()];
        }
      }
    }
    wanted.offset += base();
    ASSERT_EQ(ask(wanted).status.code(), inside ? OFFPATH_OK : OFFPATH_ERR_RANGE) << "round " << round;
    for (size_t i = 0; inside && i < places.size(); ++i)
      before_[kBytes + static_cast<size_t>(places[i])] = wanted.data[i];
    ASSERT_TRUE(untouched()) << "round " << round;
    allowed += inside;
  }
  EXPECT_GT(allowed, 100);
}

TEST_F(OnesidedTarget, DynamicWindows) {
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, 0, 0, true).ok());
  int released = 0;
  const auto count = [&] { ++released; };
  EXPECT_EQ(ask(put(base(), {1})).status.code(), OFFPATH_ERR_RANGE);
  EXPECT_TRUE(target_.attach(kClient, kTeam, kWindow, base(), 100).ok());
  EXPECT_TRUE(target_.attach(kClient, kTeam, kWindow, base() + 100, 100).ok()) << "next to each other";
  for (const auto& [at, bytes] :
       {std::pair<uint64_t, uint64_t>{0, 1}, {99, 1}, {150, 10}, {50, 300}, {199, 5}, {0, 100}}) {
    EXPECT_EQ(target_.attach(kClient, kTeam, kWindow, base() + at, bytes).code(), OFFPATH_ERR_ARGUMENT) << at;
  }
  EXPECT_EQ(target_.attach(kClient, kTeam, kWindow, base() + 300, 0).code(), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(target_.attach(kClient, kTeam, kWindow, UINT64_MAX - 3, 8).code(), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(target_.attach(kClient, kTeam, kWindow + 1, base(), 8).code(), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(ask(put(base() + 150, {1, 2})).status.code(), OFFPATH_OK);
  EXPECT_EQ(ask(put(base() + 99, {8, 9})).status.code(), OFFPATH_OK) << "over two regions";
  EXPECT_EQ(memcmp(window() + 99, "\10\11", 2), 0);
  EXPECT_EQ(ask(put(base() + 199, {8, 9})).status.code(), OFFPATH_ERR_RANGE);
  EXPECT_EQ(target_.detach(kClient, kTeam, kWindow, base() + 1, count).code(), OFFPATH_ERR_ARGUMENT);
  EXPECT_TRUE(target_.detach(kClient, kTeam, kWindow, base(), count).ok());
  EXPECT_EQ(released, 1);
  EXPECT_EQ(ask(put(base(), {1})).status.code(), OFFPATH_ERR_RANGE);
  EXPECT_EQ(ask(put(base() + 99, {8, 9})).status.code(), OFFPATH_ERR_RANGE);
  EXPECT_TRUE(target_.close(kClient, kTeam, kWindow, count).ok());
  EXPECT_EQ(released, 2);
  EXPECT_EQ(target_.close(kClient, kTeam, kWindow, count).code(), OFFPATH_ERR_ARGUMENT);
}

TEST_F(OnesidedTarget, WindowsThatCannotBeOpened) {
  open();
  EXPECT_EQ(target_.open(kClient, kTeam, kWindow, base(), 8, false).code(), OFFPATH_ERR_ARGUMENT) << "id in use";
  EXPECT_EQ(target_.open(kClient, kTeam, 4, UINT64_MAX - 7, 16, false).code(), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(target_.open(kClient, kTeam, 4, base(), 16, true).code(), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(target_.attach(kClient, kTeam, kWindow, base() + 500, 8).code(), OFFPATH_ERR_ARGUMENT) << "not dynamic";
  EXPECT_TRUE(target_.open(kClient, kTeam, 4, 0, 0, false).ok()) << "of nothing";
  EXPECT_TRUE(target_.open(kClient, kTeam + 1, kWindow, base(), 8, false).ok()) << "of another team";
}

}  // namespace
}  // namespace offpath::ops::onesided
