// SPDX-License-Identifier: BSD-3-Clause
// A collective's arguments: what is refused, what arrives in the segment, and what the client copies itself.
#include "base/limits.hpp"
#include "base/words.hpp"
#include "client/described.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace offpath::client {
namespace {

constexpr uint32_t kSize = 4;
constexpr uint32_t kRank = 1;
uint8_t memory[64];

// Arguments of member 1 of 4 that are fine for the kind.
struct Good {
  explicit Good(offpath_collective_kind_t kind) {
    c.struct_bytes = sizeof(c);
    c.kind = kind;
    send = {{0, 0, memory, 8, 0}};
    recv = {{0, 0, memory + 32, 8, 0}};
    ranges = {{0, 2}, {6, 2}};
    layouts = {{4, 8, ranges.data(), 2}};
    if (kind == OFFPATH_EXCHANGE) {
      send = {{1, 7, memory, 8, 0}, {3, 0, memory, 8, 1}, {0, 0, memory, 0, 0}};
      recv = {{2, 0, memory + 32, 8, 1}, {1, 7, memory + 40, 9, 0}};
    }
    if (kind == OFFPATH_BARRIER) send.clear(), recv.clear();
    if (kind == OFFPATH_BCAST) send.clear();  // root 0
    if (kind == OFFPATH_ALLGATHER) recv.assign(kSize, recv[0]);
    if (kind == OFFPATH_REDUCE) recv.clear();  // root 0
    if (kind == OFFPATH_REDUCE_SCATTER) {
      counts = {8, 16, 0, 8};
      send[0].bytes = 32;
      recv[0].bytes = 16;
    }
    if (kind >= OFFPATH_REDUCE) c.op = OFFPATH_OP_SUM, c.element = OFFPATH_ELEMENT_F64;
  }
  const offpath_collective_t& arguments() {
    c.send = send.data(), c.send_count = static_cast<uint32_t>(send.size());
    c.recv = recv.data(), c.recv_count = static_cast<uint32_t>(recv.size());
    c.layouts = layouts.data(), c.layouts_count = static_cast<uint32_t>(layouts.size());
    c.counts_bytes = counts.empty() ? nullptr : counts.data();
    return c;
  }
  offpath_collective_t c{};
  std::vector<offpath_block_t> send, recv;
  std::vector<offpath_range_t> ranges;
  std::vector<offpath_layout_t> layouts;
  std::vector<uint64_t> counts;
};

offpath_status_t code_of(const offpath_collective_t& c) {
  collective::Collective described;
  return describe(c, kRank, kSize, described);
}

constexpr offpath_collective_kind_t kKinds[] = {OFFPATH_EXCHANGE,       OFFPATH_BARRIER, OFFPATH_BCAST,
                                                OFFPATH_ALLGATHER,      OFFPATH_REDUCE,  OFFPATH_ALLREDUCE,
                                                OFFPATH_REDUCE_SCATTER, OFFPATH_SCAN,    OFFPATH_EXSCAN};

TEST(CheckCollective, EveryKindHasArgumentsItTakes) {
  for (const auto kind : kKinds) {
    EXPECT_EQ(code_of(Good(kind).arguments()), OFFPATH_OK) << collective::name_of(kind);
  }
  Good bcast(OFFPATH_BCAST), reduce(OFFPATH_REDUCE);
  bcast.c.root = reduce.c.root = kRank;
  std::swap(bcast.send, bcast.recv);
  reduce.recv = reduce.send;
  EXPECT_EQ(code_of(bcast.arguments()), OFFPATH_OK);
  EXPECT_EQ(code_of(reduce.arguments()), OFFPATH_OK);
}

// Applies the change to good arguments.
template <typename Change>
offpath_status_t changed(offpath_collective_kind_t kind, Change change) {
  Good good(kind);
  change(good);
  return code_of(good.arguments());
}

TEST(CheckCollective, WhatNoKindTakesIsRefused) {
  const auto refuse_everywhere = [](const char* what, auto change) {
    for (const auto kind : kKinds)
      EXPECT_EQ(changed(kind, change), OFFPATH_ERR_ARGUMENT) << what << collective::name_of(kind);
  };
  refuse_everywhere("size ", [](Good& g) { g.c.struct_bytes += 8; });
  refuse_everywhere("kind 0 ", [](Good& g) { g.c.kind = static_cast<offpath_collective_kind_t>(0); });
  refuse_everywhere("kind 10 ", [](Good& g) { g.c.kind = static_cast<offpath_collective_kind_t>(10); });
  refuse_everywhere("algorithm ", [](Good& g) {
    g.c.algorithm = static_cast<offpath_algorithm_t>(base::kWordsEnd<offpath_algorithm_t>);
  });
  refuse_everywhere("no ranges ", [](Good& g) { g.layouts[0].ranges = nullptr; });
  refuse_everywhere("empty layout ", [](Good& g) { g.layouts[0] = {0, 8, g.ranges.data(), 0}; });
  refuse_everywhere("more ranges than bytes ", [](Good& g) { g.layouts[0].size_bytes = 3; });
  refuse_everywhere("more bytes than ranges ", [](Good& g) { g.layouts[0].size_bytes = 5; });
  refuse_everywhere("sum that wraps ", [](Good& g) { g.ranges[0].bytes = UINT64_MAX, g.ranges[1].bytes = 5; });
  refuse_everywhere("endless layout ", [](Good& g) {
    g.ranges[0].bytes = base::kBlockLimitBytes - 2;
    g.layouts[0].size_bytes = base::kBlockLimitBytes;
  });
}

TEST(CheckCollective, WrongNumbersOfBlocksAreRefused) {
  for (const auto kind : kKinds) {
    if (kind == OFFPATH_EXCHANGE) continue;  // takes any number
    EXPECT_EQ(changed(kind, [](Good& g) { g.send.push_back({0, 0, memory, 8, 0}); }), OFFPATH_ERR_ARGUMENT);
    EXPECT_EQ(changed(kind, [](Good& g) { g.recv.push_back({0, 0, memory, 8, 0}); }), OFFPATH_ERR_ARGUMENT);
    if (kind == OFFPATH_BARRIER) continue;
    EXPECT_EQ(changed(kind, [](Good& g) { (g.send.empty() ? g.recv : g.send).pop_back(); }), OFFPATH_ERR_ARGUMENT);
    if (Good(kind).recv.empty()) continue;
    EXPECT_EQ(changed(kind, [](Good& g) { g.recv.pop_back(); }), OFFPATH_ERR_ARGUMENT);
  }
  EXPECT_EQ(changed(OFFPATH_EXCHANGE, [](Good& g) { g.send.clear(), g.recv.clear(); }), OFFPATH_OK);
}

TEST(CheckCollective, MissingArraysAreRefused) {
  Good good(OFFPATH_EXCHANGE);
  offpath_collective_t c = good.arguments();
  c.send = nullptr;
  EXPECT_EQ(code_of(c), OFFPATH_ERR_ARGUMENT);
  c = good.arguments();
  c.recv = nullptr;
  EXPECT_EQ(code_of(c), OFFPATH_ERR_ARGUMENT);
  c = good.arguments();
  c.layouts = nullptr;
  EXPECT_EQ(code_of(c), OFFPATH_ERR_ARGUMENT);
}

TEST(CheckCollective, WrongBlocksAreRefused) {
  for (const auto kind : kKinds) {
    if (kind == OFFPATH_BARRIER) continue;
    const auto refuse = [&](auto change) {
      EXPECT_EQ(changed(kind, [&](Good& g) { change(g.send.empty() ? g.recv[0] : g.send[0]); }), OFFPATH_ERR_ARGUMENT)
          << collective::name_of(kind);
    };
    refuse([](offpath_block_t& block) { block.address = nullptr; });
    refuse([](offpath_block_t& block) { block.layout = 2; });
    refuse([](offpath_block_t& block) { block.layout = UINT32_MAX; });
    refuse([](offpath_block_t& block) { block.bytes = base::kBlockLimitBytes; });
    refuse([](offpath_block_t& block) { block.bytes = UINT64_MAX; });
    refuse([](offpath_block_t& block) { block.peer = kSize; });
    if (kind == OFFPATH_EXCHANGE) continue;
    refuse([](offpath_block_t& block) { block.peer = 1; });
    refuse([](offpath_block_t& block) { block.tag = 1; });
  }
}

TEST(CheckCollective, BlocksThatNothingTellsApartAreRefused) {
  const auto with_tags = [](std::vector<std::pair<uint32_t, uint32_t>> keys, bool send) {
    return changed(OFFPATH_EXCHANGE, [&](Good& g) {
      std::vector<offpath_block_t>& blocks = send ? g.send : g.recv;
      g.send.clear(), g.recv.clear();
      for (const auto& [peer, tag] : keys) blocks.push_back({peer, tag, memory, 1, 0});
    });
  };
  for (const bool send : {true, false}) {
    EXPECT_EQ(with_tags({{0, 0}, {3, 0}, {3, 1}, {2, 0}}, send), OFFPATH_OK);
    EXPECT_EQ(with_tags({{2, 0}, {3, UINT32_MAX - 1}, {0, 0}, {3, 0}}, send), OFFPATH_OK);
    EXPECT_EQ(with_tags({{0, 0}, {3, 7}, {3, 7}}, send), OFFPATH_ERR_ARGUMENT);
    EXPECT_EQ(with_tags({{3, 7}, {2, 0}, {0, 1}, {3, 7}}, send), OFFPATH_ERR_ARGUMENT);
  }
}

TEST(CheckCollective, ALayoutMayBeginAtAddressZero) {
  EXPECT_EQ(changed(OFFPATH_EXCHANGE, [](Good& g) { g.send[1].address = nullptr; }), OFFPATH_OK);
  EXPECT_EQ(changed(OFFPATH_BCAST, [](Good& g) { g.recv[0] = {0, 0, nullptr, 0, 0}; }), OFFPATH_OK);
}

TEST(CheckCollective, RootsAreMembers) {
  for (const uint32_t root : {kSize, UINT32_MAX}) {
    EXPECT_EQ(changed(OFFPATH_BCAST, [&](Good& g) { g.c.root = root; }), OFFPATH_ERR_ARGUMENT);
    EXPECT_EQ(changed(OFFPATH_REDUCE, [&](Good& g) { g.c.root = root; }), OFFPATH_ERR_ARGUMENT);
  }
}

TEST(CheckCollective, WrongReductionsAreRefused) {
  for (const auto kind : kKinds) {
    if (kind < OFFPATH_REDUCE) continue;
    const auto refuse = [&](auto change) {
      EXPECT_EQ(changed(kind, change), OFFPATH_ERR_ARGUMENT) << collective::name_of(kind);
    };
    refuse([](Good& g) { g.c.op = OFFPATH_OP_NONE; });
    refuse([](Good& g) { g.c.op = OFFPATH_OP_REPLACE; });
    refuse([](Good& g) { g.c.op = OFFPATH_OP_NO_OP; });
    refuse([](Good& g) { g.c.op = static_cast<offpath_operator_t>(13); });
    refuse([](Good& g) { g.c.element = OFFPATH_ELEMENT_NONE; });
    refuse([](Good& g) { g.c.element = static_cast<offpath_element_t>(23); });
    refuse([](Good& g) { g.send[0].layout = 1; });
    if (kind == OFFPATH_REDUCE) continue;
    refuse([](Good& g) { g.recv[0].layout = 1; });
    refuse([](Good& g) { g.recv[0].bytes += 8; });
  }
  const auto refuse_scatter = [](auto change) {
    EXPECT_EQ(changed(OFFPATH_REDUCE_SCATTER, change), OFFPATH_ERR_ARGUMENT);
  };
  refuse_scatter([](Good& g) { g.counts.clear(); });
  refuse_scatter([](Good& g) { g.counts[0] = 16; });
  refuse_scatter([](Good& g) { g.counts[0] = UINT64_MAX, g.counts[2] = 9; });
  refuse_scatter([](Good& g) { std::swap(g.counts[0], g.counts[1]); });
}

TEST(CheckCollective, MoreThanASegmentIsNoMemory) {
  Good good(OFFPATH_EXCHANGE);
  offpath_collective_t c = good.arguments();
  c.send_count = UINT32_MAX;  // nobody looks behind the array's end
  EXPECT_EQ(code_of(c), OFFPATH_ERR_NO_MEMORY);
  c = good.arguments();
  c.layouts_count = UINT32_MAX;
  EXPECT_EQ(code_of(c), OFFPATH_ERR_NO_MEMORY);
  EXPECT_EQ(changed(OFFPATH_EXCHANGE, [](Good& g) { g.layouts[0].ranges_count = UINT32_MAX; }), OFFPATH_ERR_NO_MEMORY);
}

TEST(Described, SaysWhatTheServiceReads) {
  for (const auto kind : kKinds) {
    Good good(kind);
    good.c.algorithm = OFFPATH_ALGORITHM_RING;
    good.c.root = 3;
    collective::Collective described;
    ASSERT_EQ(describe(good.arguments(), kRank, kSize, described), OFFPATH_OK);
    const auto got = collective::decode(encode(described));
    ASSERT_TRUE(got.ok()) << got.status().text();
    EXPECT_EQ(got->kind, kind);
    EXPECT_EQ(got->algorithm, OFFPATH_ALGORITHM_RING);
    EXPECT_EQ(got->root, 3U);
    EXPECT_EQ(got->reduction, (kernels::Reduction{good.c.op, good.c.element}));
    const auto expect_blocks = [](const std::vector<memory::Block>& blocks, const std::vector<offpath_block_t>& given) {
      ASSERT_EQ(blocks.size(), given.size());
      for (size_t i = 0; i < given.size(); ++i) {
        EXPECT_EQ(blocks[i], (memory::Block{given[i].peer, given[i].tag, reinterpret_cast<uint64_t>(given[i].address),
                                            given[i].bytes, given[i].layout}));
      }
    };
    expect_blocks(got->send, good.send);
    expect_blocks(got->recv, good.recv);
    EXPECT_EQ(got->counts_bytes, good.counts);
    ASSERT_EQ(got->layouts.size(), 1U);
    EXPECT_EQ(got->layouts[0].size_bytes, 4U);
    EXPECT_EQ(got->layouts[0].extent_bytes, 8);
    ASSERT_EQ(got->layouts[0].ranges.size(), 2U);
    EXPECT_EQ(got->layouts[0].ranges[1].offset, 6);
    EXPECT_EQ(got->layouts[0].ranges[1].bytes, 2U);
  }
}

OwnBlocks own_blocks_of(Good good) {
  collective::Collective described;
  EXPECT_EQ(describe(good.arguments(), kRank, kSize, described), OFFPATH_OK);
  return own_blocks(described, kRank);
}

TEST(OwnBlocks, ArePairedByTag) {
  Good good(OFFPATH_EXCHANGE);
  good.send = {{1, 5, memory, 3, 0}, {0, 2, memory, 8, 1}, {1, 2, memory + 8, 4, 0}, {1, 9, memory, 0, 0}};
  good.recv = {{1, 2, memory + 32, 4, 0}, {1, 3, memory, 7, 0}, {2, 5, memory, 1, 0}, {1, 5, memory + 40, 6, 0}};
  const OwnBlocks own = own_blocks_of(good);
  EXPECT_TRUE(own.contiguous);
  ASSERT_EQ(own.copies.size(), 2U);
  EXPECT_EQ(own.copies[0].source, memory + 8);
  EXPECT_EQ(own.copies[0].target, memory + 32);
  EXPECT_EQ(own.copies[0].bytes, 4U);
  EXPECT_EQ(own.copies[1].source, memory);
  EXPECT_EQ(own.copies[1].target, memory + 40);
  EXPECT_EQ(own.copies[1].bytes, 3U);
}

TEST(OwnBlocks, LongerThanTheirTargetAreTruncated) {
  Good good(OFFPATH_EXCHANGE);
  good.send[0].bytes = 10;
  EXPECT_EQ(code_of(good.arguments()), OFFPATH_ERR_TRUNCATED);
  good.send[0] = {1, 8, memory, 1, 0};  // nothing to receive it
  EXPECT_EQ(code_of(good.arguments()), OFFPATH_ERR_TRUNCATED);
  Good allgather(OFFPATH_ALLGATHER);
  allgather.send[0].bytes = 9;
  EXPECT_EQ(code_of(allgather.arguments()), OFFPATH_ERR_TRUNCATED);
  allgather.send[0].bytes = 7;
  EXPECT_EQ(code_of(allgather.arguments()), OFFPATH_ERR_ARGUMENT);
}

TEST(OwnBlocks, LayoutsAreLeftToTheService) {
  Good good(OFFPATH_EXCHANGE);
  EXPECT_TRUE(own_blocks_of(good).contiguous) << "blocks for others may be as they like";
  good.recv[1].layout = 1;
  EXPECT_FALSE(own_blocks_of(good).contiguous);
}

TEST(OwnBlocks, InPlaceThereIsNothingToCopy) {
  Good good(OFFPATH_ALLGATHER);
  EXPECT_EQ(own_blocks_of(good).copies.size(), 1U);
  good.send[0] = good.recv[kRank];
  EXPECT_TRUE(own_blocks_of(good).copies.empty());
  good.send[0].layout = good.recv[kRank].layout = 1;
  EXPECT_TRUE(own_blocks_of(good).contiguous);
}

TEST(OwnBlocks, OtherKindsHaveNone) {
  for (const auto kind : {OFFPATH_BARRIER, OFFPATH_BCAST, OFFPATH_REDUCE, OFFPATH_ALLREDUCE, OFFPATH_SCAN}) {
    EXPECT_TRUE(own_blocks_of(Good(kind)).copies.empty()) << collective::name_of(kind);
  }
}

}  // namespace
}  // namespace offpath::client
