// SPDX-License-Identifier: BSD-3-Clause
// SegmentView against a segment whose owner lies: whatever is written there, nothing outside it is ever touched.
#include "session/segment_view.hpp"
#include "client_segment.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace offpath::session {
namespace {

class Segment : public ::testing::Test, public testing::ClientSegment {
 protected:
  static constexpr uint32_t kAddressOf[] = {2, 0, 1, 2};
  TeamRecord& record() { return at<TeamRecord>(kArenaOffset); }
  SegmentView view() { return std::move(SegmentView::open(other_mapping()).value()); }
  void good_record() {
    TeamRecord& team = record();
    team.rank = 1;
    team.size = 4;
    team.address_stride = 100;
    team.addresses = kArenaOffset + 4096;
    team.addresses_count = 3;
    team.address_of = kArenaOffset + 8192;
    memcpy(memory.data() + team.address_of, kAddressOf, sizeof(kAddressOf));
    team.lost = kArenaOffset + 12288;
  }
};

TEST_F(Segment, GoodHeaderIsAccepted) { EXPECT_TRUE(SegmentView::open(other_mapping()).ok()); }

TEST_F(Segment, EveryWrongHeaderValueIsRefused) {
  const auto refused = [&](const char* what) {
    EXPECT_EQ(SegmentView::open(other_mapping()).status().code(), OFFPATH_ERR_ARGUMENT) << what;
  };
  const auto check = [&](auto& field, const char* what) {
    const auto good = field;
    for (const auto bad : {good - 1, good + 1, good * 2, good - good, ~(good - good)}) {
      field = static_cast<std::remove_reference_t<decltype(field)>>(bad);
      refused(what);
    }
    field = good;
  };
  check(header().magic, "magic");
  check(header().version, "version");
  check(header().slot_count, "slot_count");
  check(header().segment_bytes, "segment_bytes");
  check(header().ring_offset, "ring_offset");
  check(header().slots_offset, "slots_offset");
  check(header().arena_offset, "arena_offset");
  EXPECT_TRUE(SegmentView::open(other_mapping()).ok());
}

TEST_F(Segment, OtherSizesAreRefused) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, kSegmentBytes - 4096, kSegmentBytes + 4096}) {
    auto small = base::Memfd::create("test", bytes);
    ASSERT_TRUE(small.ok());
    EXPECT_EQ(SegmentView::open(std::move(small.value())).status().code(), OFFPATH_ERR_ARGUMENT) << bytes;
  }
}

TEST(SharedMemory, LiesBehindTheSegmentAndIsAnnounced) {
  auto memory = base::Memfd::create("test", kSegmentBytes + 8192);
  ASSERT_TRUE(memory.ok());
  const auto open = [&] {
    return SegmentView::open(std::move(base::Memfd::adopt(base::Fd(dup(memory->fd())), memory->bytes()).value()));
  };
  const testing::ClientSegment good;
  memcpy(memory->data(), good.memory.data(), sizeof(SegmentHeader));
  auto& header = *reinterpret_cast<SegmentHeader*>(memory->data());
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4096}, uint64_t{8191}, uint64_t{12288}, UINT64_MAX}) {
    header.shared_bytes = bytes;
    EXPECT_EQ(open().status().code(), OFFPATH_ERR_ARGUMENT) << bytes;
  }
  header.shared_bytes = 8192;
  header.shared_address = UINT64_MAX - 8190;
  EXPECT_EQ(open().status().code(), OFFPATH_ERR_ARGUMENT);
  header.shared_address = 0x7000;
  const auto view = open();
  ASSERT_TRUE(view.ok());
  header.shared_address = 0x9000;  // too late
  EXPECT_EQ(view->shared_address(), 0x7000U);
  EXPECT_EQ(view->shared_bytes(), 8192U);
  view->shared_data()[8191] = 5;
  EXPECT_EQ(memory->data()[kSegmentBytes + 8191], 5);
  EXPECT_EQ(view->bytes_at(kSegmentBytes, 1), nullptr);
}

TEST_F(Segment, SubmissionsAreTakenInOrder) {
  SegmentView v = view();
  EXPECT_EQ(v.take_submission(), std::nullopt);
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < kSlotCount; ++i) submit(kSlotCount - 1 - i);
    for (uint32_t i = 0; i < kSlotCount; ++i) ASSERT_EQ(v.take_submission(), kSlotCount - 1 - i);
    EXPECT_EQ(v.take_submission(), std::nullopt);
  }
}

TEST_F(Segment, OnlyTimedSlotsGetTimes) {
  SegmentView v = view();
  slot(1).flags = kTimed;
  for (const uint32_t index : {0U, 1U}) {
    SegmentView::note_start(v.slot(index));
    SegmentView::note_first_byte(v.slot(index));
    v.finish(index, OFFPATH_OK);
  }
  EXPECT_EQ(slot(0).started_ns + slot(0).first_byte_ns + slot(0).done_ns, 0U);
  EXPECT_GT(slot(1).started_ns, 0U);
  EXPECT_GE(slot(1).first_byte_ns, slot(1).started_ns);
  EXPECT_GE(slot(1).done_ns, slot(1).first_byte_ns);
}

TEST_F(Segment, CountersMayWrap) {
  header().submitted.store(UINT32_MAX - 1);
  header().consumed.store(UINT32_MAX - 1);
  SegmentView v = view();
  for (uint32_t i = 0; i < 5; ++i) submit(i);
  for (uint32_t i = 0; i < 5; ++i) ASSERT_EQ(v.take_submission(), i);
}

TEST_F(Segment, WildIndexEndsTheRingForEver) {
  for (const uint32_t wild : {kSlotCount, kSlotCount + 1, 0x80000000U, UINT32_MAX}) {
    header().submitted.store(0);
    header().consumed.store(0);
    SegmentView v = view();
    submit(3);
    submit(wild);
    submit(4);
    EXPECT_EQ(v.take_submission(), 3U);
    EXPECT_EQ(v.take_submission(), std::nullopt);
    reinterpret_cast<Atomic32*>(memory.data() + kRingOffset)[1].store(5);
    EXPECT_EQ(v.take_submission(), std::nullopt) << "not even when it is mended";
  }
}

TEST_F(Segment, OverrunEndsTheRing) {
  for (const uint32_t ahead : {kSlotCount + 1, 2 * kSlotCount, UINT32_MAX}) {
    header().consumed.store(7);
    header().submitted.store(7 + ahead);
    SegmentView v = view();
    EXPECT_EQ(v.take_submission(), std::nullopt);
    header().submitted.store(8);
    EXPECT_EQ(v.take_submission(), std::nullopt);
  }
}

TEST_F(Segment, BytesOutsideTheArenaAreNotHandedOut) {
  SegmentView v = view();
  EXPECT_NE(v.bytes_at(kArenaOffset, 0), nullptr);
  EXPECT_NE(v.bytes_at(kArenaOffset, kSegmentBytes - kArenaOffset), nullptr);
  EXPECT_NE(v.bytes_at(kSegmentBytes - 1, 1), nullptr);
  EXPECT_EQ(v.bytes_at(kSegmentBytes - 1, 2), nullptr);
  EXPECT_EQ(v.bytes_at(kSegmentBytes, 1), nullptr);
  EXPECT_EQ(v.bytes_at(kSegmentBytes + 1, 0), nullptr);
  EXPECT_EQ(v.bytes_at(kArenaOffset - 1, 1), nullptr);
  EXPECT_EQ(v.bytes_at(0, 1), nullptr);
  EXPECT_EQ(v.bytes_at(UINT64_MAX, 1), nullptr);
  EXPECT_EQ(v.bytes_at(UINT64_MAX - 10, 20), nullptr);
  EXPECT_EQ(v.bytes_at(kArenaOffset, kSegmentBytes), nullptr);
  EXPECT_EQ(v.bytes_at(kArenaOffset, UINT64_MAX), nullptr);
  EXPECT_EQ(v.bytes_at(kArenaOffset + 64, UINT64_MAX - 32), nullptr);
}

TEST_F(Segment, TeamRecordsLieInTheArenaAndAligned) {
  SegmentView v = view();
  EXPECT_NE(v.team_record(kArenaOffset), nullptr);
  EXPECT_NE(v.team_record(kSegmentBytes - sizeof(TeamRecord)), nullptr);
  for (const uint64_t bad :
       {uint64_t{0}, uint64_t{kArenaOffset - 8}, uint64_t{kArenaOffset + 1}, uint64_t{kArenaOffset + 4},
        uint64_t{kSegmentBytes - sizeof(TeamRecord) + 8}, uint64_t{kSegmentBytes}, UINT64_MAX, UINT64_MAX - 7}) {
    EXPECT_EQ(v.team_record(bad), nullptr) << bad;
    EXPECT_FALSE(v.team_arguments(bad).ok()) << bad;
  }
}

TEST_F(Segment, TeamArgumentsAreCopied) {
  good_record();
  memset(memory.data() + kArenaOffset + 4096, 0x5A, 400);
  SegmentView v = view();
  const auto team = v.team_arguments(kArenaOffset);
  ASSERT_TRUE(team.ok()) << team.status().text();
  memset(memory.data() + kArenaOffset + 4096, 0, 400);
  EXPECT_EQ(team->size, 4U);
  EXPECT_EQ(team->rank, 1U);
  EXPECT_EQ(team->addresses, std::vector<uint8_t>(300, 0x5A));
  EXPECT_EQ(team->address_of, std::vector<uint32_t>(std::begin(kAddressOf), std::end(kAddressOf)));
}

TEST_F(Segment, ImpossibleTeamsAreRefused) {
  SegmentView v = view();
  const auto refuse = [&](auto change) {
    good_record();
    change(record());
    EXPECT_EQ(v.team_arguments(kArenaOffset).status().code(), OFFPATH_ERR_ARGUMENT);
  };
  refuse([](TeamRecord& t) { t.rank = 4; });
  refuse([](TeamRecord& t) { t.rank = UINT32_MAX; });
  refuse([](TeamRecord& t) { t.size = 0; });
  refuse([](TeamRecord& t) { t.size = UINT32_MAX; });
  refuse([](TeamRecord& t) { t.size = 0x80000000; });
  refuse([](TeamRecord& t) { t.size = 80000000; });           // their numbers do not fit
  refuse([](TeamRecord& t) { t.addresses_count = 800000; });  // nor do these
  refuse([](TeamRecord& t) { t.addresses_count = 2; });       // there is a third one
  refuse([](TeamRecord& t) { t.addresses_count = 0; });
  refuse([](TeamRecord& t) { t.address_of = 64; });
  refuse([](TeamRecord& t) { t.address_of = kSegmentBytes - 15; });
  refuse([](TeamRecord& t) { t.address_stride = 0; });
  refuse([](TeamRecord& t) { t.address_stride = OFFPATH_ADDRESS_MAX_BYTES + 1; });
  refuse([](TeamRecord& t) { t.address_stride = UINT32_MAX; });
  refuse([](TeamRecord& t) { t.addresses = 0; });
  refuse([](TeamRecord& t) { t.addresses = kSegmentBytes - 299; });
  refuse([](TeamRecord& t) { t.addresses = UINT64_MAX - 100; });
  refuse([](TeamRecord& t) { t.lost = 64; });
  refuse([](TeamRecord& t) { t.lost = kSegmentBytes - 3; });
}

TEST_F(Segment, CountersLieInTheArenaAndAligned) {
  SegmentView v = view();
  EXPECT_NE(v.counters_at(kArenaOffset, 0), nullptr);
  EXPECT_NE(v.counters_at(kSegmentBytes - 12, 3), nullptr);
  EXPECT_EQ(v.counters_at(kSegmentBytes - 12, 4), nullptr);
  EXPECT_EQ(v.counters_at(kArenaOffset + 2, 1), nullptr);
  EXPECT_EQ(v.counters_at(kArenaOffset - 4, 1), nullptr);
  EXPECT_EQ(v.counters_at(UINT64_MAX - 3, 1), nullptr);
  for (const uint64_t count : {uint64_t{1} << 62, (uint64_t{1} << 62) + 1, UINT64_MAX, kSegmentBytes / 4}) {
    EXPECT_EQ(v.counters_at(kArenaOffset, count), nullptr) << count;
  }
}

TEST_F(Segment, FinishCountsAndWakes) {
  SegmentView v = view();
  v.finish(9, OFFPATH_OK);
  v.finish(1023, OFFPATH_ERR_TRUNCATED);
  const auto* slots = reinterpret_cast<const Slot*>(memory.data() + kSlotsOffset);
  EXPECT_EQ(slots[9].state.load(), 3U);
  EXPECT_EQ(slots[1023].status, OFFPATH_ERR_TRUNCATED);
  EXPECT_EQ(header().events.load(), 2U);
  EXPECT_EQ(header().counters.completed.load(), 2U);
  EXPECT_EQ(header().counters.failed.load(), 1U);
}

// A client with shared memory.
struct Aliases : ::testing::Test {
  static constexpr uint64_t kShared = 64 * 4096;
  base::Memfd memory = std::move(base::Memfd::create("test", kSegmentBytes + kShared).value());
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(memory.data()); }
  AliasRecord* table() const { return reinterpret_cast<AliasRecord*>(memory.data() + kAliasesOffset); }
  SegmentView view() const {
    describe_layout(header());
    header().shared_bytes = kShared;
    auto other = base::Memfd::adopt(base::Fd(dup(memory.fd())), kSegmentBytes + kShared);
    return std::move(SegmentView::open(std::move(other.value())).value());
  }
  void publish(const std::vector<AliasRecord>& aliases) const {
    std::copy(aliases.begin(), aliases.end(), table());
    header().aliases_count = static_cast<uint32_t>(aliases.size());
    header().aliases_version += 2;
  }
};

TEST_F(Aliases, AreTakenOnceForEachVersion) {
  SegmentView v = view();
  EXPECT_FALSE(v.take_aliases().has_value());
  publish({{0x20000, 4096, 8192}, {0x10000, 8192, 0}});
  const auto taken = v.take_aliases();
  ASSERT_TRUE(taken.has_value());
  ASSERT_EQ(taken->size(), 2U);
  EXPECT_EQ((*taken)[0].address, 0x10000U);
  EXPECT_EQ((*taken)[1].offset, 8192U);
  EXPECT_FALSE(v.take_aliases().has_value());
  publish({});
  EXPECT_TRUE(v.take_aliases()->empty());
}

TEST_F(Aliases, OfATableThatIsBeingWrittenThereAreNone) {
  SegmentView v = view();
  publish({{0x10000, 4096, 0}});
  ++header().aliases_version;
  EXPECT_TRUE(v.take_aliases()->empty());
  ++header().aliases_version;
  EXPECT_EQ(v.take_aliases()->size(), 1U);
}

TEST_F(Aliases, LiesAreNotBelieved) {
  SegmentView v = view();
  const std::vector<std::vector<AliasRecord>> lies = {
      {{0x10000, kShared + 4096, 0}},
      {{0x10000, 4096, kShared}},
      {{0x10000, 8192, kShared - 4096}},
      {{0x10000, 4096, UINT64_MAX - 4095}},
      {{0x10000, UINT64_MAX - 4095, 4096}},
      {{UINT64_MAX - 4095, 8192, 0}},
      {{0x10001, 4096, 0}},
      {{0x10000, 4095, 0}},
      {{0x10000, 4096, 1}},
      {{0x10000, 0, 0}},
      {{0x10000, 8192, 0}, {0x11000, 4096, 8192}},
  };
  for (const auto& lie : lies) {
    publish(lie);
    EXPECT_TRUE(v.take_aliases()->empty());
  }
  publish({});
  header().aliases_count = kMaxAliases + 1;
  header().aliases_version += 2;
  EXPECT_TRUE(v.take_aliases()->empty());
  std::mt19937_64 random(18);
  const auto wild = [&]() -> uint64_t {
    const uint64_t choices[] = {random(), random() % 80 * 4096, kShared, UINT64_MAX - 4095, 4096, 0};
    return choices[random() % std::size(choices)];
  };
  size_t believed = 0;
  for (int i = 0; i < 20000; ++i) {
    publish({{wild(), wild(), wild()}, {wild(), wild(), wild()}});
    header().aliases_count = static_cast<uint32_t>(1 + random() % 2);
    const auto taken = v.take_aliases();
    uint64_t end = 0;
    for (const AliasRecord& alias : *taken) {
      ++believed;
      ASSERT_LE(alias.bytes, kShared);
      ASSERT_LE(alias.offset, kShared - alias.bytes);
      ASSERT_GE(alias.address, end);
      end = alias.address + alias.bytes;
      ASSERT_GT(end, alias.address);
    }
  }
  EXPECT_GT(believed, 10U);
}

TEST_F(Segment, RandomRecordsNeverReachOutside) {
  std::mt19937_64 random(17);
  SegmentView v = view();
  const auto wild = [&]() -> uint64_t {
    const uint64_t choices[] = {random(), random() % kSegmentBytes, kSegmentBytes - random() % 4096, kArenaOffset,
                                random() % 64};
    return choices[random() % std::size(choices)];
  };
  for (int i = 0; i < 3000; ++i) {
    TeamRecord& team = record();
    team.rank = static_cast<uint32_t>(wild());
    team.size = static_cast<uint32_t>(wild());
    team.address_stride = static_cast<uint32_t>(random() % 2048);
    team.addresses = wild();
    team.addresses_count = static_cast<uint32_t>(wild());
    team.address_of = wild();
    team.lost = wild();
    const auto out = v.team_arguments(kArenaOffset);
    if (out.ok()) {
      ASSERT_EQ(out->address_of.size(), size_t{out->size});
      for (const uint32_t each : out->address_of) ASSERT_LT(each, out->addresses.size() / out->address_stride);
    }
  }
}

}  // namespace
}  // namespace offpath::session
