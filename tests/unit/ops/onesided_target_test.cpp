// SPDX-License-Identifier: BSD-3-Clause
// The target without an engine: regions, short operations, lanes and locks.
#include "../remote/body.hpp"
#include "ops/onesided/target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

namespace offpath::ops::onesided {
namespace {

using graph::Answer;
using graph::RequestId;
using remote::testing::Body;

constexpr uint64_t kTeam = 7, kWindow = 3;
constexpr graph::ClientId kClient = 5;
constexpr size_t kBytes = 256;

class OnesidedTarget : public ::testing::Test {
 protected:
  OnesidedTarget() {
    for (size_t i = 0; i < sizeof(space_); ++i) space_[i] = static_cast<uint8_t>(i * 7 + 1);
    memcpy(before_, space_, sizeof(space_));
  }
  uint64_t base() const { return reinterpret_cast<uint64_t>(space_ + kBytes); }
  uint8_t* window() { return space_ + kBytes; }
  void open() { ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, base(), kBytes, false).ok()); }
  bool untouched() const { return memcmp(space_, before_, sizeof(space_)) == 0; }

  Answer ask(const Body& wanted, uint32_t from = 0) {
    return target_.on_request(kClient, kTeam, from, ++last_, memory_, encode(wanted));
  }
  static Body put(uint64_t offset, std::vector<uint8_t> data) {
    Body out;
    out.window = kWindow;
    out.offset = offset;
    out.bytes = data.size();
    out.data = std::move(data);
    return out;
  }
  static Body sum(uint64_t offset, uint64_t bytes, uint64_t value = 1) {
    Body out;
    out.window = kWindow;
    out.kind = OFFPATH_ACCUMULATE;
    out.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
    out.offset = offset;
    out.bytes = bytes;
    if (is_short(out)) {
      out.data.resize(bytes);
      for (uint64_t at = 0; at < bytes; at += 8) memcpy(&out.data[at], &value, 8);
    }
    return out;
  }
  static Body of_kind(offpath_remote_kind_t kind, uint64_t window = kWindow) {
    Body out;
    out.window = window;
    out.kind = kind;
    return out;
  }
  offpath_status_t answered(RequestId request) {
    return answers_.contains(request) ? answers_.at(request).status.code() : OFFPATH_IN_PROGRESS;
  }
  uint64_t value_at(uint64_t offset) {
    uint64_t out;
    memcpy(&out, window() + offset, 8);
    return out;
  }

  uint8_t space_[3 * kBytes], before_[3 * kBytes];
  std::shared_ptr<memory::Port> memory_ = memory::make_direct();
  std::map<RequestId, Answer> answers_;
  RequestId last_ = 0;
  Target target_{[this](RequestId request, Answer answer) {
    EXPECT_TRUE(answers_.emplace(request, std::move(answer)).second) << "answered twice";
  }};
};

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

TEST_F(OnesidedTarget, LongAccumulatesHoldTheLane) {
  constexpr uint64_t kLong = 4096;
  std::vector<uint64_t> large(kLong / 8);
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, reinterpret_cast<uint64_t>(large.data()), kLong, false).ok());
  EXPECT_EQ(ask(sum(0, kLong)).kind, Answer::Kind::graph);
  const RequestId first = last_;
  EXPECT_EQ(ask(sum(0, 8, 10)).kind, Answer::Kind::later);
  const RequestId second = last_;
  EXPECT_EQ(ask(sum(0, kLong), 1).kind, Answer::Kind::later);
  const RequestId third = last_;
  EXPECT_EQ(ask(sum(8, 8, 100)).kind, Answer::Kind::later);
  const RequestId fourth = last_;
  EXPECT_EQ(ask(put(16, {7})).kind, Answer::Kind::reply) << "puts do not wait";
  EXPECT_EQ(large[0], 0U);
  target_.on_answered(kClient, kTeam, first, {});
  EXPECT_EQ(answered(second), OFFPATH_OK);
  EXPECT_EQ(large[0], 10U);
  ASSERT_EQ(answers_.count(third), 1U);
  EXPECT_EQ(answers_.at(third).kind, Answer::Kind::graph);
  EXPECT_EQ(answers_.count(fourth), 0U);
  target_.on_answered(kClient, kTeam, third, base::Status::error(OFFPATH_ERR_PEER_LOST, "lost"));
  EXPECT_EQ(large[1], 100U) << "also after a failure";
  EXPECT_EQ(ask(sum(0, 8)).kind, Answer::Kind::reply) << "free again";
}

TEST_F(OnesidedTarget, OnesWhoseOriginIsLostLeaveTheLane) {
  constexpr uint64_t kLong = 4096;
  std::vector<uint64_t> large(kLong / 8);
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, reinterpret_cast<uint64_t>(large.data()), kLong, false).ok());
  ask(sum(0, kLong));
  const RequestId first = last_;
  ask(sum(0, 8), 1);
  const RequestId second = last_;
  ask(sum(0, 8), 2);
  const RequestId third = last_;
  target_.on_answered(kClient, kTeam, second, base::Status::error(OFFPATH_ERR_PEER_LOST, "lost"));
  target_.on_answered(kClient, kTeam, first, {});
  EXPECT_EQ(answers_.count(second), 0U);
  EXPECT_EQ(answered(third), OFFPATH_OK);
  EXPECT_EQ(large[0], 1U);
}

TEST_F(OnesidedTarget, ClosingWaitsForGraphsAndRefusesWhatWaits) {
  constexpr uint64_t kLong = 4096;
  std::vector<uint64_t> large(kLong / 8);
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, reinterpret_cast<uint64_t>(large.data()), kLong, false).ok());
  ask(sum(0, kLong));
  const RequestId accumulate = last_;
  Body get = of_kind(OFFPATH_GET);
  get.bytes = kLong;
  EXPECT_EQ(ask(get).kind, Answer::Kind::graph);
  const RequestId second = last_;
  ask(sum(0, 8));
  const RequestId waiting = last_;
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_EXCLUSIVE), 0).kind, Answer::Kind::reply);
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_SHARED), 1).kind, Answer::Kind::later);
  const RequestId lock = last_;
  int released = 0;
  EXPECT_TRUE(target_.close(kClient, kTeam, kWindow, [&] { ++released; }).ok());
  EXPECT_EQ(answered(waiting), OFFPATH_ERR_RANGE);
  EXPECT_EQ(answered(lock), OFFPATH_ERR_RANGE);
  EXPECT_EQ(ask(sum(0, 8)).status.code(), OFFPATH_ERR_RANGE);
  EXPECT_EQ(released, 0);
  target_.on_answered(kClient, kTeam, second, {});
  EXPECT_EQ(released, 0);
  target_.on_answered(kClient, kTeam, accumulate, {});
  EXPECT_EQ(released, 1);
  EXPECT_EQ(large[0], 0U);
}

TEST_F(OnesidedTarget, EveryRegionOfALongOneIsHeld) {
  constexpr uint64_t kHalf = 4096;
  std::vector<uint8_t> large(2 * kHalf);
  const auto at = reinterpret_cast<uint64_t>(large.data());
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, 0, 0, true).ok());
  for (const uint64_t half : {at, at + kHalf}) ASSERT_TRUE(target_.attach(kClient, kTeam, kWindow, half, kHalf).ok());
  EXPECT_EQ(ask(sum(at, 2 * kHalf)).kind, Answer::Kind::graph);
  int released = 0;
  for (const uint64_t half : {at + kHalf, at}) {
    EXPECT_TRUE(target_.detach(kClient, kTeam, kWindow, half, [&] { ++released; }).ok());
  }
  EXPECT_EQ(released, 0);
  target_.on_answered(kClient, kTeam, last_, {});
  EXPECT_EQ(released, 2);
}

TEST_F(OnesidedTarget, ClientsThatGoAreForgotten) {
  constexpr uint64_t kLong = 4096;
  std::vector<uint64_t> large(kLong / 8);
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, reinterpret_cast<uint64_t>(large.data()), kLong, false).ok());
  ask(sum(0, kLong));
  const RequestId graph = last_;
  ask(sum(0, 8));
  target_.remove_client(kClient);
  target_.on_answered(kClient, kTeam, graph, base::Status::error(OFFPATH_ERR_PEER_LOST, "lost"));
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(ask(sum(0, 8)).status.code(), OFFPATH_ERR_RANGE);
}

TEST_F(OnesidedTarget, LocksAreGrantedInTheOrderOfAsking) {
  open();
  std::map<uint32_t, RequestId> asked;
  const auto lock = [&](uint32_t from, offpath_remote_kind_t kind) {
    const Answer answer = ask(of_kind(kind), from);
    asked[from] = last_;
    return answer.kind == Answer::Kind::later ? OFFPATH_IN_PROGRESS : answer.status.code();
  };
  const auto unlock = [&](uint32_t from) { return ask(of_kind(OFFPATH_UNLOCK), from).status.code(); };
  EXPECT_EQ(unlock(0), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(lock(0, OFFPATH_LOCK_SHARED), OFFPATH_OK);
  EXPECT_EQ(lock(0, OFFPATH_LOCK_SHARED), OFFPATH_ERR_ARGUMENT) << "twice";
  EXPECT_EQ(lock(1, OFFPATH_LOCK_SHARED), OFFPATH_OK);
  EXPECT_EQ(lock(2, OFFPATH_LOCK_EXCLUSIVE), OFFPATH_IN_PROGRESS);
  EXPECT_EQ(lock(3, OFFPATH_LOCK_SHARED), OFFPATH_IN_PROGRESS) << "not past the exclusive one";
  EXPECT_EQ(lock(4, OFFPATH_LOCK_SHARED), OFFPATH_IN_PROGRESS);
  EXPECT_EQ(lock(5, OFFPATH_LOCK_EXCLUSIVE), OFFPATH_IN_PROGRESS);
  EXPECT_EQ(lock(5, OFFPATH_LOCK_EXCLUSIVE), OFFPATH_ERR_ARGUMENT) << "waits already";
  asked[5] -= 1;
  EXPECT_EQ(unlock(3), OFFPATH_ERR_ARGUMENT) << "does not hold it yet";
  EXPECT_EQ(unlock(0), OFFPATH_OK);
  EXPECT_EQ(answered(asked[2]), OFFPATH_IN_PROGRESS);
  EXPECT_EQ(unlock(1), OFFPATH_OK);
  EXPECT_EQ(answered(asked[2]), OFFPATH_OK);
  EXPECT_EQ(answered(asked[3]), OFFPATH_IN_PROGRESS);
  target_.lose_member(kClient, kTeam, 2);  // while it holds the lock
  EXPECT_EQ(answered(asked[3]), OFFPATH_OK);
  EXPECT_EQ(answered(asked[4]), OFFPATH_OK);
  EXPECT_EQ(answered(asked[5]), OFFPATH_IN_PROGRESS);
  EXPECT_EQ(lock(6, OFFPATH_LOCK_SHARED), OFFPATH_IN_PROGRESS);
  target_.lose_member(kClient, kTeam + 1, 5);  // of another team
  target_.lose_member(kClient, kTeam, 5);      // while it waits
  EXPECT_EQ(answered(asked[5]), OFFPATH_IN_PROGRESS) << "nobody to be told";
  EXPECT_EQ(answered(asked[6]), OFFPATH_OK);
}

}  // namespace
}  // namespace offpath::ops::onesided
