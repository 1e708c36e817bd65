// SPDX-License-Identifier: BSD-3-Clause
// Announced payloads of blocks that belong where the service can write in place: they are fetched there, without a
// buffer in between.
#include "exchange.hpp"
#include "hostile.hpp"

namespace offpath::testing {
namespace {

constexpr uint64_t kChunk = 64, kBytes = 200;

class InPlace : public ::testing::Test, public engine::Observer, public engine::Neighbours {
 protected:
  InPlace() {
    engine.add_client(1, std::shared_ptr<memory::Port>(memory::make_direct()));
    engine::TeamSpec spec;
    spec.client = 1;
    spec.members = {{true, 0, {}}, {false, 0, {2}}};
    team = engine.add_team(std::move(spec)).value();
    pull(0, graph::client_place(address_of(&target[kBytes])), kBytes);
    data.kind = Kind::data;
    data.bytes = kBytes;
  }
  void settle() {
    while (engine.progress()) {
    }
  }
  // An operation of that number, whose block `data` is a part of from now on.
  void pull(uint64_t number, graph::Place place, uint64_t bytes) {
    graph::Graph graph;
    graph.pull(1, 0, place, bytes);
    engine.post(team, number, std::move(graph), number);
    settle();
    for (const Message& m : script.sent) {
      if (m.kind == Kind::pull) data.pull_id = m.pull_id;
    }
  }
  void announce(uint64_t offset, size_t bytes) {
    data.offset = offset;
    uint8_t header[wire::kMaxMessageBytes];
    engine.on_announced(fabric::Bytes(header, wire::encode(data, header)), bytes, 1);
  }
  void on_step(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_served(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_finished(engine::ClientId, uint64_t, base::Status status) override { outcome = status.code(); }
  void on_member_lost(engine::ClientId, uint64_t, uint32_t, engine::Loss) override {}
  void send(uint32_t, const Message&, fabric::Bytes) override {}
  void offer(uint32_t, uint64_t, std::shared_ptr<memory::Port>, uint64_t, uint64_t) override {}

  static engine::Config config() {
    engine::Config out;
    out.chunk_bytes = kChunk;
    out.pool_chunks = 2;
    return out;
  }
  Script script;
  engine::Engine engine{config(), script, *this, *this};
  std::vector<uint8_t> target = std::vector<uint8_t>(3 * kBytes, 0x22);
  engine::TeamHandle team = 0;
  Message data;
  std::optional<offpath_status_t> outcome;
};

TEST_F(InPlace, PayloadsGoStraightToWhereTheyBelong) {
  for (const uint64_t at : {128, 0, 192, 64}) announce(at, std::min(kChunk, kBytes - at));
  settle();
  ASSERT_EQ(script.places.size(), 4U) << "no buffer of the pool is needed";
  EXPECT_EQ(script.places[0], &target[kBytes + 128]);
  EXPECT_EQ(script.places[2], &target[kBytes + 192]);
  EXPECT_EQ(outcome, std::nullopt);
  for (const uint64_t context : std::exchange(script.fetching, {})) engine.on_fetched(context, true);
  settle();
  EXPECT_EQ(outcome, OFFPATH_OK);
  for (size_t i = 0; i < target.size(); ++i) {
    ASSERT_EQ(target[i], i / kBytes == 1 ? 0xBB : 0x22) << i;
  }
  EXPECT_EQ(engine.traffic().received_bytes, kBytes);
}

TEST_F(InPlace, NothingIsFetchedToOutsideTheBlock) {
  for (const uint64_t at : {uint64_t{kBytes - 1}, uint64_t{137}, uint64_t{kBytes}}) announce(at, kChunk);
  data.bytes = 2 * kBytes;
  announce(kBytes, kChunk);
  data.bytes = kBytes;
  data.pull_id += 1000;
  announce(0, kChunk);
  data.pull_id -= 1000;
  for (int i = 0; i < 5; ++i) announce(0, kChunk);  // more than the block, all before any was fetched
  settle();
  EXPECT_EQ(script.places, std::vector<void*>(3, &target[kBytes]));
  EXPECT_EQ(script.dropped, 7);
  for (size_t i = 0; i < target.size(); ++i) {
    ASSERT_EQ(target[i], i / kBytes == 1 && i % kBytes < kChunk ? 0xBB : 0x22) << i;
  }
}

// A pull of no bytes has no place.
TEST_F(InPlace, BytesForANotificationAreRefused) {
  pull(1, graph::Place(), 0);
  data.bytes = 0;
  announce(0, kChunk);
  settle();
  EXPECT_EQ(script.dropped, 1);
  EXPECT_EQ(engine.refused_count(), 1U);
  uint8_t header[wire::kMaxMessageBytes];
  engine.on_message(fabric::Bytes(header, wire::encode(data, header)), {});
  settle();
  EXPECT_EQ(outcome, OFFPATH_OK);
}

TEST_F(InPlace, AnOperationThatIsGivenUpWaitsForWhatIsBeingFetched) {
  announce(0, kChunk), announce(64, kChunk);
  settle();
  engine.on_peer_lost(0);
  settle();
  EXPECT_EQ(outcome, std::nullopt) << "its buffer is being written";
  engine.on_fetched(script.fetching[0], true);
  settle();
  EXPECT_EQ(outcome, std::nullopt);
  engine.on_fetched(script.fetching[1], false);
  settle();
  EXPECT_TRUE(outcome.value_or(OFFPATH_OK) < 0);
}

TEST_F(InPlace, AClientMayGoMeanwhile) {
  announce(0, kChunk);
  settle();
  engine.remove_client(1);
  settle();
  engine.on_fetched(script.fetching[0], true);
  settle();
  EXPECT_EQ(outcome, std::nullopt) << "there is nobody to be told";
}

}  // namespace
}  // namespace offpath::testing
