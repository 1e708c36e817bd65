// SPDX-License-Identifier: BSD-3-Clause
// Multicasts whose chunks are coded together: whatever is lost, late or wrong on the way, all have what was sent.
// multicast_test.cpp runs with a codec as well (OFFPATH_TEST_CODEC).
#include "../kernels/data.hpp"
#include "late_coder.hpp"
#include "multicast/packs.hpp"
#include "multicast_nodes.hpp"

namespace offpath::testing {
namespace {

using wire::Kind;

constexpr uint64_t kTickNs = 50'000;  // coding looks at the clock often, which is not to be taken for silence

engine::Config coding_by(const char* wish) {
  engine::Config config;
  config.chunk_bytes = 800;  // so much is coded together, 20 chunks
  config.compress = codecs::parse_wish(wish).value();
  return config;
}

uint64_t sum(Nodes& nodes, uint64_t engine::Traffic::*field) {
  uint64_t out = 0;
  for (uint32_t rank = 0; rank < kNodes; ++rank) out += nodes.cluster_->engine_of(rank).traffic().*field;
  return out;
}

TEST(CodedMulticast, WhatIsSavedLeavesInFewerDatagrams) {
  if (ports_are_late()) GTEST_SKIP() << "what is being written still may be fetched, too";
  for (const char* wish : {"lz4", "zstd:shuffle=8", "deflate"}) {
    SCOPED_TRACE(wish);
    Nodes nodes(2, coding_by(wish), kTickNs);
    nodes.use(text_bytes(8000));
    nodes.offer_groups();
    nodes.allgather(0);
    nodes.expect_right(0);
    EXPECT_LT(nodes.datagrams(), kNodes * 200 / 2);
    EXPECT_EQ(nodes.said(Kind::fetch), 0U);
    EXPECT_EQ(sum(nodes, &engine::Traffic::sent_bytes), kNodes * 8000);
    EXPECT_EQ(sum(nodes, &engine::Traffic::coded_bytes), kNodes * 8000);
    EXPECT_LT(sum(nodes, &engine::Traffic::wire_bytes), kNodes * 8000 / 2);
    EXPECT_EQ(sum(nodes, &engine::Traffic::received_bytes), kNodes * 3 * 8000);
  }
}

TEST(CodedMulticast, WhatDoesNotShrinkGoesAsItIs) {
  Nodes nodes(2, coding_by("lz4"), kTickNs);
  nodes.use(random_bytes(80'000));
  nodes.offer_groups();
  nodes.allgather(0);
  nodes.expect_right(0);
  EXPECT_EQ(sum(nodes, &engine::Traffic::coded_bytes), 0U);
  EXPECT_GE(nodes.datagrams(), kNodes * 2000);
  // Both kinds in one part.
  Nodes::Data mixed = random_bytes(80'000);
  std::fill(mixed.begin() + 40'000, mixed.end(), uint8_t{7});
  nodes.use(mixed);
  nodes.allgather(1);
  nodes.expect_right(1);
  EXPECT_GT(sum(nodes, &engine::Traffic::coded_bytes), kNodes * 8000) << "it must be tried again";
}

TEST(CodedMulticast, WhatIsLostIsFetched) {
  const fabric::GroupFaults kinds[] = {
      {.lost = 0.02},
      {.lost = 0.3, .overtaken = 0.5},
      {.lost_for_all = 0.1, .doubled = 0.5},
      {.overtaken = 0.9, .stale = 0.5},
      {.lost = 1},
      {.lost = 0.1, .lost_for_all = 0.05, .doubled = 0.1, .overtaken = 0.3, .stale = 0.2}};
  for (uint64_t seed = 0; seed < 30 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Nodes nodes(seed, coding_by(seed % 2 == 0 ? "lz4" : "zstd"), kTickNs);
    nodes.use(text_bytes(4000 + 41 * seed));
    nodes.offer_groups();
    nodes.allgather(0);
    for (uint64_t number = 1; number < 4; ++number) {
      nodes.groups_->set_faults(kinds[(seed + number) % std::size(kinds)]);
      nodes.allgather(number);
      nodes.expect_right(number);
    }
    EXPECT_GT(nodes.said(Kind::fetch), 0U);
    EXPECT_GT(sum(nodes, &engine::Traffic::coded_bytes), 0U);
  }
}

// One datagram of a pack loses all of its chunks, but it is one that was lost: the group goes on.
TEST(CodedMulticast, LossIsCountedInDatagrams) {
  if (ports_are_late()) GTEST_SKIP() << "what is being written still may be fetched, too";
  engine::Config config = coding_by("lz4");
  config.chunk_bytes = 4000;
  Nodes nodes(3, config, kTickNs);
  nodes.use(text_bytes(40'000));
  nodes.offer_groups();
  nodes.allgather(0);
  nodes.groups_->set_faults({.lost = 0.1});
  for (uint64_t number = 1; number < 8; ++number) nodes.allgather(number);
  nodes.expect_right(7);
  const uint64_t before = nodes.datagrams();
  nodes.allgather(8);
  EXPECT_GT(nodes.datagrams(), before);
}

TEST(CodedMulticast, NobodyGetsWhatANodeCannotRead) {
  LateCoder knows_lz4(1, codecs::bit_of(codecs::CodecId::lz4));
  engine::Config config = coding_by("zstd");
  config.coder = &knows_lz4;
  Nodes nodes(2, config, kTickNs);
  nodes.use(text_bytes(8000));
  nodes.offer_groups();
  nodes.allgather(0);
  nodes.expect_right(0);
  EXPECT_EQ(sum(nodes, &engine::Traffic::coded_bytes), 0U);
  EXPECT_GE(nodes.datagrams(), kNodes * 200);
}

TEST(CodedMulticast, ACoderMayAnswerLater) {
  for (uint64_t seed = 0; seed < 20 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    LateCoder coder(seed);
    engine::Config config = coding_by("lz4");
    config.coder = &coder;
    Nodes nodes(seed, config, kTickNs);
    nodes.use(text_bytes(6000));
    nodes.offer_groups({.lost = seed % 3 == 0 ? 0 : 0.1, .doubled = 0.2, .overtaken = 0.3});
    const uint32_t lost = seed % 4 == 3 ? static_cast<uint32_t>(seed / 4 % kNodes) : UINT32_MAX;
    for (uint32_t rank = 0; rank < kNodes; ++rank) nodes.post(rank, 0);
    for (uint64_t i = 0; lost != UINT32_MAX && i < 60 * seed; ++i) nodes.cluster_->step(), coder.step();
    if (lost != UINT32_MAX) nodes.cluster_->cut_node(lost);
    while (nodes.settle(), coder.step()) {
    }
    if (lost == UINT32_MAX) nodes.expect_right(0);
    for (uint32_t rank = 0; rank < kNodes; ++rank) {
      EXPECT_TRUE(rank == lost || nodes.cluster_->outcome(rank, 0).has_value()) << rank << " waits for ever";
    }
    EXPECT_GT(sum(nodes, &engine::Traffic::coded_bytes), 0U);
  }
}

// By a clock of the test's: a slow link, and codecs that are faster.
TEST(CodedMulticast, AutoCodesWhatShrinks) {
  if (ports_are_late()) GTEST_SKIP() << "what is being written still may be fetched, too";
  for (const bool shrinks : {true, false}) {
    SCOPED_TRACE(shrinks);
    engine::Config config = coding_by("auto");
    config.multicast_rate = 40'000;  // codecs take some ticks of the clock for each pack, and that less
    Nodes nodes(2, config, kTickNs);
    nodes.use(shrinks ? text_bytes(40'000) : random_bytes(40'000));
    nodes.offer_groups();
    for (uint64_t number = 0; number < 3; ++number) {
      nodes.allgather(number);
      nodes.expect_right(number);
    }
    const uint64_t coded = sum(nodes, &engine::Traffic::coded_bytes);
    EXPECT_TRUE(shrinks ? coded > kNodes * 3 * 40'000 / 2 : coded == 0) << coded;
  }
}

TEST(CodedMulticast, WhatWouldBeSavedIsSampled) {
  Nodes nodes(2, coding_by("sample"), kTickNs);
  nodes.use(text_bytes(40'000));
  nodes.offer_groups();
  nodes.allgather(0);
  nodes.expect_right(0);
  EXPECT_EQ(sum(nodes, &engine::Traffic::coded_bytes), 0U);
  const auto sampled = nodes.cluster_->told(1, 0).sampled;
  EXPECT_GT(sampled.bytes, 0U);
  EXPECT_LT(sampled.left, sampled.bytes);
}

// Also where what has come by multicast, or by the ring, is passed on.
TEST(CodedMulticast, NumbersLoseSomethingOnce) {
  if (ports_are_late()) GTEST_SKIP() << "what is being written still may be fetched, too";
  if (!codecs::is_built(codecs::CodecId::zfp)) GTEST_SKIP() << "this build has no zfp";
  for (const double lost : {0.0, 0.2, 1.0}) {
    SCOPED_TRACE(lost);
    Nodes nodes(2, coding_by("zfp:abs=1e-4"), kTickNs);
    const Nodes::Data data = smooth_doubles(8000);
    nodes.use(data, OFFPATH_ELEMENT_F64);
    nodes.offer_groups();
    nodes.allgather(0);
    nodes.groups_->set_faults({.lost = lost});
    const uint64_t before = sum(nodes, &engine::Traffic::lossy_bytes);
    EXPECT_EQ(before, kNodes * data.size());
    nodes.allgather(1);
    double largest = 0;
    for (uint32_t rank = 0; rank < kNodes; ++rank) {
      EXPECT_EQ(nodes.cluster_->outcome(rank, 1), OFFPATH_OK);
      const Nodes::Data& memory = nodes.memory_of(1, rank);
      for (uint64_t i = 0; i < memory.size(); i += sizeof(double)) {
        double got, sent;
        std::memcpy(&got, &memory[i], sizeof(got)), std::memcpy(&sent, &data[i % data.size()], sizeof(sent));
        largest = std::max(largest, std::fabs(got - sent));
      }
    }
    EXPECT_GT(largest, 0);
    EXPECT_LE(largest, 1e-4);
    // By multicast, and once more to the owner's successor, at most.
    EXPECT_LE(sum(nodes, &engine::Traffic::lossy_bytes) - before, 2 * kNodes * data.size());
  }
}

// A member says anything in packs that are its own: what cannot be is passed over, and what means something else is
// fetched.
TEST(CodedMulticast, StrangePacksHarmNobody) {
  for (uint64_t seed = 0; seed < 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Nodes nodes(seed, coding_by(seed % 2 == 0 ? "lz4" : "off"), kTickNs);
    nodes.use(text_bytes(4000));
    nodes.offer_groups();
    nodes.allgather(0);
    std::mt19937_64 random(seed);
    for (uint32_t rank = 0; rank < kNodes; ++rank) nodes.post(rank, 1);
    auto packs = *multicast::Packs::make(20, 40);
    for (int i = 0; i < 400; ++i) {
      nodes.cluster_->step();
      const auto rank = static_cast<uint32_t>(random() % kNodes);
      const auto& joined = nodes.cluster_->fabric_of(rank).groups_joined;
      ASSERT_FALSE(joined.empty());
      const multicast::Coded coded{static_cast<uint32_t>(random() % 4 == 0 ? random() : random() % 700),
                                   static_cast<uint32_t>(random()), static_cast<uint8_t>(random() % 10),
                                   static_cast<uint8_t>(uint32_t{1} << random() % 4)};
      const Nodes::Data junk = random_bytes(900, random());
      const uint32_t index = static_cast<uint32_t>(random() % 25);
      const auto datagram = packs.write(coded, junk, index);
      const size_t length = random() % 4 == 0 ? random() % 41 : datagram.size();
      const uint32_t first = random() % 4 == 0 ? static_cast<uint32_t>(random()) : rank * 100 + random() % 5 * 20;
      joined.back()->push(1, multicast::kCoded | (first + index), datagram.first(std::min(length, datagram.size())));
    }
    nodes.settle();
    nodes.expect_right(1);
  }
}

}  // namespace
}  // namespace offpath::testing
