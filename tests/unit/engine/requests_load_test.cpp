// SPDX-License-Identifier: BSD-3-Clause
// Very many requests, next to long blocks, with few chunks: all end, in order, and none is lost.
#include "exchange.hpp"
#include "requests.hpp"

namespace offpath::testing {
namespace {

constexpr uint64_t kMany = 10000;  // more than may be unanswered at one target

struct Load : Requests {
  explicit Load(engine::Config config = Cluster::small_chunks()) : Requests(2, 31, config) {}
  void expect_order(uint32_t target, uint32_t from, uint64_t count) {
    uint64_t next = 0;
    for (const auto& seen : at(target).seen) {
      if (seen.client != target + 1 || seen.from != from) continue;
      ASSERT_EQ(seen.ask.serial, next++);
    }
    EXPECT_EQ(next, count);
  }
};

struct LoadInBatches : Load {
  static engine::Config batches() {
    engine::Config config;
    config.chunk_bytes = 2000;
    config.pool_chunks = 6;
    return config;
  }
  LoadInBatches() : Load(batches()) {}
};

TEST_F(LoadInBatches, ThousandsOutstanding) {
  Bytes replies(kMany);
  for (const uint32_t target : {0U, 1U, 2U}) {
    for (uint64_t serial = 0; serial < kMany; ++serial) {
      ask(0, target, {.bytes = 1, .serial = serial}, address_of(replies.data() + serial));
    }
  }
  cluster.settle();
  for (uint64_t context = 1u << 20; context < next_context; ++context) {
    ASSERT_EQ(cluster.outcome(0, context), OFFPATH_OK) << context;
  }
  for (const uint32_t target : {0U, 1U, 2U}) expect_order(target, 0, kMany);
  const auto& sent = cluster.fabric_of(0).sent;
  EXPECT_LT(sent.size(), kMany / 8) << "they share fabric messages";
}

TEST_F(Load, ThousandsOutstandingOneByOne) {
  Bytes replies(kMany);
  for (uint64_t serial = 0; serial < kMany; ++serial) {
    ask(0, 1, {.bytes = 1, .serial = serial}, address_of(replies.data() + serial));
  }
  cluster.settle();
  for (uint64_t serial = 0; serial < kMany; ++serial) ASSERT_EQ(replies[serial], echo_byte(serial));
  expect_order(1, 0, kMany);
}

// One that waits for ever must not hold up those behind it.
TEST_F(LoadInBatches, OneThatIsPutOffStopsNobody) {
  ask(0, 1, {Ask::later, Ask::echo});
  for (uint64_t serial = 1; serial < kMany; ++serial) ask(0, 1, {.serial = serial});
  cluster.settle();
  EXPECT_FALSE(cluster.outcome(0, 1u << 20).has_value());
  for (uint64_t i = 1; i < kMany; ++i) ASSERT_EQ(cluster.outcome(0, (1u << 20) + i), OFFPATH_OK);
  finish();
  EXPECT_EQ(cluster.outcome(0, 1u << 20), OFFPATH_OK);
}

TEST_F(Load, LongBlocksDoNotStarveThem) {
  const size_t length = 20000;
  const Bytes send(4 * length, 7);
  std::vector<Bytes> recv(4, Bytes(4 * length));
  for (uint32_t rank = 0; rank < 4; ++rank) {
    cluster.engine_of(rank).post(
        team[rank], 0, alltoall_graph(rank, 4, address_of(send.data()), address_of(recv[rank].data()), length), 0);
  }
  for (int i = 0; i < 200; ++i) cluster.step();
  ASSERT_FALSE(cluster.outcome(0, 0).has_value());
  Bytes reply(60 * 30);
  std::vector<uint64_t> posted;
  for (uint64_t i = 0; i < 30; ++i) {
    posted.push_back(ask(0, 1, {.bytes = 60, .serial = i}, address_of(reply.data() + i * 60)));
  }
  while (!cluster.outcome(0, posted.back())) cluster.step();
  EXPECT_FALSE(cluster.outcome(0, 0).has_value()) << "they waited for the end of the blocks";
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
  EXPECT_EQ(recv, std::vector<Bytes>(4, send));
  for (size_t i = 0; i < reply.size(); ++i) ASSERT_EQ(reply[i], echo_byte(i / 60));
}

TEST_F(Load, ManyWithDataAndFewChunks) {
  const size_t count = 600;
  std::vector<Bytes> here(count, Bytes(300)), there = here;
  std::vector<std::pair<uint32_t, uint64_t>> posted;
  for (size_t i = 0; i < count; ++i) {
    for (Bytes* buffer : {&here[i], &there[i]}) std::fill(buffer->begin(), buffer->end(), static_cast<uint8_t>(i));
    const auto rank = static_cast<uint32_t>(i % 4);
    const Ask::Kind kinds[] = {Ask::put, Ask::get, Ask::swap};
    const Ask::Kind kind = kinds[cluster.random()() % 3];
    const uint64_t bytes = kind == Ask::swap ? 150 : 300;
    const Ask what{i % 7 ? kind : Ask::later, kind, address_of(there[i].data()), bytes};
    posted.emplace_back(rank, ask(rank, cluster.random()() % 4, what, address_of(here[i].data())));
  }
  finish();
  for (const auto& [rank, context] : posted) EXPECT_EQ(cluster.outcome(rank, context), OFFPATH_OK);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(here[i], there[i]);
  for (const auto& [node, responder] : responders) EXPECT_TRUE(responder.open.empty());
}

}  // namespace
}  // namespace offpath::testing
