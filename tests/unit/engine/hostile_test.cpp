// SPDX-License-Identifier: BSD-3-Clause
// One honest engine and a neighbour on the network that says whatever it likes. It may spoil the operations it takes
// part in; it may not write or read outside the posted blocks, crash the engine, or make it hold ever more memory.
#include "base/words.hpp"
#include "hostile.hpp"

#include <algorithm>
#include <limits>

namespace offpath::testing {
namespace {

TEST_F(Hostile, TheFixtureIsHonestWhenItWantsToBe) {
  post();
  finish_well();
  expect_untouched();
}

TEST_F(Hostile, DataOutsideTheBlockIsRefused) {
  post();
  client_memory->writes = 0;
  const uint64_t before = honest->refused_count();
  say(data(kBlock + 1, 0), 64);  // more in all than was asked for
  say(data(wire::kMaxBlockBytes, kBlock), 64);
  say(data(kBlock, kBlock), 1);        // begins at the end
  say(data(kBlock, kBlock - 63), 64);  // runs over the end by one byte
  say(data(kBlock, 1), 60000);         // longer than block and chunk
  say(data(0, 0), 64);                 // an empty block with bytes
  expect_untouched();
  EXPECT_EQ(client_memory->writes, 0);
  EXPECT_EQ(honest->refused_count() - before, 6U);
  EXPECT_EQ(outcome.count(0), 0U);
  finish_well();
}

TEST_F(Hostile, OffsetsThatOverflowAreRefused) {
  post();
  client_memory->writes = 0;
  for (const uint64_t offset : {uint64_t{201}, uint64_t{1} << 46, uint64_t{1} << 63, UINT64_MAX - 63, UINT64_MAX}) {
    for (const uint64_t total : {kBlock, uint64_t{1} << 46, UINT64_MAX}) say(data(total, offset), 64);
  }
  expect_untouched();
  EXPECT_EQ(client_memory->writes, 0);
  finish_well();
}

TEST_F(Hostile, TheTotalMayNotChangeOnTheWay) {
  post();
  say(data(100, 0), 64);
  say(data(kBlock, 64), 64);
  settle();
  EXPECT_EQ(outcome.count(0), 0U);
  say(data(100, 64), 36);
  take();
  expect_untouched();
  EXPECT_EQ(outcome[0], OFFPATH_OK);
}

// Repeated chunks may not make a block look complete, nor leave it waiting for ever: the sender broke the protocol.
TEST_F(Hostile, RepeatedChunksEndTheOperationOrAreIgnored) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    heard.clear(), outcome.clear();
    post(seed);
    Message chunk = data(kBlock, 0, seed);
    for (int i = 0; i < 6; ++i) say(chunk, 64);
    expect_untouched();
    EXPECT_TRUE(!outcome.contains(seed) || outcome[seed] != OFFPATH_OK) << "72 bytes never came";
    for (chunk.offset = 64; chunk.offset < kBlock; chunk.offset += 64)
      say(chunk, std::min<uint64_t>(64, kBlock - chunk.offset));
    take(seed);
    expect_untouched();
    EXPECT_TRUE(outcome.contains(seed)) << "waits for ever";
  }
}

TEST_F(Hostile, UnknownPullIdsAreIgnored) {
  post();
  const uint64_t real = pull_for().pull_id;
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, real + 1, real ^ (uint64_t{1} << 63), UINT64_MAX}) {
    for (const Kind kind : {Kind::data, Kind::fail}) {
      Message m = data(kBlock, 0);
      m.kind = kind, m.pull_id = id, m.status = OFFPATH_ERR_PEER_LOST;
      say(m, kind == Kind::data ? 64 : 0);
    }
  }
  expect_untouched();
  EXPECT_EQ(outcome.count(0), 0U);
  finish_well();
}

TEST_F(Hostile, LateChunksOfAFinishedBlockAreIgnored) {
  post();
  const Message late = data(kBlock, 0);
  finish_well();
  target.assign(target.size(), 0x33);
  for (int i = 0; i < 20; ++i) say(late, 64);
  expect_untouched();
  EXPECT_EQ(target, std::vector<uint8_t>(2 * kBlock, 0x33));
}

TEST_F(Hostile, GarbageIsRefused) {
  post();
  std::mt19937_64 random(8);
  const uint64_t before = honest->refused_count();
  for (int i = 0; i < 5000; ++i) {
    std::vector<uint8_t> bytes(1 + random() % wire::kMaxMessageBytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    send(bytes, fabric::Bytes(payload).first(random() % 2 == 0 ? 0 : random() % 200));
  }
  expect_untouched();
  EXPECT_EQ(honest->refused_count() - before, 5000U);
  finish_well();
}

TEST_F(Hostile, MutatedMessagesNeverEscape) {
  std::mt19937_64 random(9);
  for (uint64_t sequence = 0; sequence < 60; ++sequence) {
    post(sequence);
    for (int i = 0; i < 60; ++i) {
      Message m = about(static_cast<Kind>(1 + random() % 9), random() % 3 == 0 ? random() : sequence, 0, 1);
      m.pull_id = pull_for(sequence).pull_id;
      m.tag = random() % 4 == 0 ? static_cast<uint32_t>(random()) : 0;
      m.status = -static_cast<int32_t>(random() % 12);
      m.offset = random() % 300;
      if (random() % 3 == 0) m.from = static_cast<uint32_t>(random());
      if (random() % 3 == 0) m.to = static_cast<uint32_t>(random());
      if (random() % 2 == 0) m.bytes = random() % 400;
      uint8_t bytes[wire::kMaxMessageBytes];
      const size_t length = wire::encode(m, bytes);
      if (random() % 2 == 0) bytes[random() % length] ^= static_cast<uint8_t>(1 << random() % 8);
      send(fabric::Bytes(bytes, length), fabric::Bytes(payload).first(random() % 90));
    }
    expect_untouched();
  }
}

TEST_F(Hostile, PayloadWithOtherKindsIsRefused) {
  post();
  const uint64_t before = honest->refused_count();
  for (const Kind kind : {Kind::hello, Kind::pull, Kind::done, Kind::fail, Kind::lost}) say(about(kind, 0, 0, 1), 50);
  expect_untouched();
  EXPECT_EQ(honest->refused_count() - before, 5U);
  EXPECT_TRUE(outcome.empty() && lost.empty());
}

TEST_F(Hostile, UnknownTeamsAndRanksAreIgnored) {
  post();
  for (const uint32_t wild : {2U, 3U, 1000000U, 0x80000000U, UINT32_MAX}) {
    for (const Kind kind : {Kind::done, Kind::lost, Kind::pull}) {
      say(about(kind, 0, wild, 1)), say(about(kind, 0, 0, wild)), say(about(kind, 0, wild, 0)),
          say(about(kind, 0, wild, wild));
      Message m = about(kind, 0, 0, 1);
      m.team.bytes[5] = 99;
      say(m);
    }
  }
  say(about(Kind::lost, 0, 0, 0));  // "you yourself are lost"
  expect_untouched();
  EXPECT_TRUE(outcome.empty() && lost.empty());
  finish_well();
}

TEST_F(Hostile, AFailWithAnUnknownStatusIsNotPassedOn) {
  for (const int32_t status :
       {1, 0, base::kLastError - 1, -1000, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
    const uint64_t sequence = static_cast<uint64_t>(outcome.size());
    post(sequence);
    Message fail = about(Kind::fail, sequence, 0, 1);
    fail.pull_id = pull_for(sequence).pull_id;
    fail.status = status;
    say(fail);
    settle();
    fail.status = OFFPATH_ERR_MEMORY_FAULT;  // where the first one was refused
    say(fail);
    take(sequence);
    expect_untouched();  // on_finished checks the status
    EXPECT_TRUE(outcome.contains(sequence));
  }
}

TEST_F(Hostile, PullsForUnknownTeamsAreKeptUpToALimit) {
  for (uint32_t i = 0; i < 5000; ++i) {
    Message m = about(Kind::pull, i, 0, 1);
    m.team.bytes[1] = static_cast<uint8_t>(i), m.team.bytes[2] = static_cast<uint8_t>(i >> 8), m.team.bytes[3] = 1;
    say(m);
  }
  settle();
  EXPECT_EQ(honest->refused_count(), 4900U) << "parked_limit is 100";
  post();
  finish_well();
}

// As much as so many messages without a payload, whatever was there before.
TEST_F(Hostile, LongRequestsForUnknownTeamsAreKeptUpToTheSameLimit) {
  constexpr size_t kLength = 9 * sizeof(Message);  // as 10 messages
  const auto hear = [&](Kind kind, uint8_t id, size_t payload_bytes) {
    Message m = about(kind, 0, 0, 1, kind == Kind::pull ? wire::Channel::collectives : wire::Channel::calls);
    m.team.bytes[1] = id, m.team.bytes[2] = 1;
    uint8_t bytes[wire::kMaxMessageBytes];
    honest->on_message({bytes, wire::encode(m, bytes)}, fabric::Bytes(payload).first(payload_bytes));
  };
  for (uint8_t i = 0; i < 100; ++i) hear(Kind::pull, i, 0);
  EXPECT_EQ(honest->refused_count(), 0U);
  for (uint8_t i = 100; i < 150; ++i) hear(Kind::request, i, kLength);
  EXPECT_GE(honest->refused_count(), 100U + 50 - 11) << "parked_limit is 100";
}

TEST_F(Hostile, PullsForFarOperationsAreKeptUpToALimit) {
  for (uint64_t i = 0; i < 5000; ++i) say(about(Kind::pull, 1000000 + i, 0, 1));
  settle();
  const auto fails = std::count_if(heard.begin(), heard.end(), [](const Message& m) { return m.kind == Kind::fail; });
  EXPECT_EQ(fails, 4900);
  post();
  finish_well();
}

TEST_F(Hostile, RepeatedPullsAreServedFromTheBlockOnly) {
  post();
  heard.resize(
      1 + static_cast<size_t>(std::count_if(heard.begin(), heard.end(), [](auto& m) { return m.kind != Kind::pull; })));
  for (int i = 0; i < 2000; ++i) {
    Message m = about(Kind::pull, 0, 0, 1);
    m.pull_id = 100000u + static_cast<uint64_t>(i);
    say(m);
  }
  expect_untouched();
  const auto sent = std::count_if(heard.begin(), heard.end(), [](const Message& m) { return m.kind == Kind::data; });
  EXPECT_LE(sent, 2 * 4) << "one block of four chunks was exported once; asking again must not multiply the work";
}

TEST_F(Hostile, PullsOfTooLittleEndAnExportOnce) {
  const std::vector<uint64_t> out{0, kBlock}, in{0, 0};
  const std::vector<int64_t> displs{0, 0};
  for (uint64_t i = 0; i < 4; ++i) {  // parked: the operation is not posted yet
    Message m = about(Kind::pull, 0, 0, 1);
    m.bytes = m.offset = 10;
    m.pull_id = 50 + i;
    say(m);
  }
  settle();
  honest->post(team, 0,
               alltoallv_graph({0, address_of(source.data()), address_of(target.data()), out, in, displs, displs}), 0);
  expect_untouched();
  EXPECT_TRUE(outcome.contains(0));
}

// Nothing was ever sent there: an empty block. One that is taken is gone, and who asks for it again is told so.
// It has ended, and stays until the reads of its block have ended, too: with ports that are late (engine_test.late).
TEST_F(Hostile, MoreIsAskedForOfABlockThatIsGivenUp) {
  graph::Graph graph;
  graph.offer(1, 0, graph::client_place(address_of(source.data())), kBlock);
  honest->post(team, 0, std::move(graph), 0);
  settle();
  const auto listen = [&] {
    for (int i = 0; i < 200; ++i) honest->progress(), raw->progress();
  };
  Message pull = about(Kind::pull, 0, 0, 1);
  pull.offset = 64;
  say(pull);
  listen();
  Message lost = about(Kind::lost, 0, 1, 0);
  lost.status = OFFPATH_ERR_NOT_STARTED;
  say(lost);
  listen();
  pull.offset = kBlock;
  say(pull);
  listen();
  settle();
  EXPECT_EQ(honest->traffic().sent_bytes, late_port == nullptr ? 64U : 0U) << "nothing of it leaves any more";
}

TEST_F(Hostile, WhatIsGoneIsNotEmpty) {
  graph::Graph graph;
  graph.offer(1, 0, graph::client_place(address_of(source.data())), kBlock);
  graph.pull(1, 3, graph::client_place(address_of(target.data())), kBlock);  // so that the operation goes on
  honest->post(team, 0, std::move(graph), 0);
  settle();
  auto ask = [&, asked = 0](uint32_t tag) mutable {
    Message pull = about(Kind::pull, 0, 0, 1);
    pull.tag = tag;
    pull.pull_id += ++asked;
    heard.clear();
    say(pull);
    settle();
    return std::count_if(heard.begin(), heard.end(), [&](const Message& m) {
      return m.kind == Kind::fail && m.pull_id == pull.pull_id && m.status == OFFPATH_ERR_STATE;
    });
  };
  EXPECT_EQ(ask(0), 0);
  EXPECT_EQ(ask(0), 1) << "it is on its way";
  say(about(Kind::done, 0, 0, 1));
  settle();
  EXPECT_EQ(ask(0), 1) << "it was taken";
  EXPECT_EQ(ask(7), 0) << "there never was one";
}

TEST_F(Hostile, AnnouncedPayloadsOfOnePullAreBounded) {
  post();
  for (int i = 0; i < 3000; ++i) say(data(kBlock, 0), 64);
  expect_untouched();
  EXPECT_TRUE(!outcome.contains(0) || outcome[0] != OFFPATH_OK);
}

TEST_F(Hostile, ChunksFetchedTogetherMayNotExceedTheBlock) {
  Script script;
  engine::Config config;
  config.chunk_bytes = 64;
  engine::Engine alone(config, script, *this, *this);
  alone.add_client(kClient, client_memory);
  engine::TeamSpec spec;
  spec.client = kClient;
  spec.members = {{true, 0, {}}, {false, 0, {2}}};
  const auto handle = alone.add_team(std::move(spec)).value();
  const std::vector<uint64_t> none{0, 0}, block{0, kBlock};
  const std::vector<int64_t> displs{0, 0};
  alone.post(handle, 0,
             alltoallv_graph({0, address_of(source.data()), address_of(target.data()), none, block, displs, displs}),
             0);
  Message chunk;
  chunk.kind = Kind::data;
  for (const Message& m : script.sent) {
    if (m.kind == Kind::pull) chunk.pull_id = m.pull_id;
  }
  chunk.bytes = kBlock;
  uint8_t header[wire::kMaxMessageBytes];
  const auto announce = [&](uint64_t offset, size_t bytes) {
    chunk.offset = offset;
    const size_t length = wire::encode(chunk, header);
    alone.on_announced(fabric::Bytes(header, length), bytes, 1);
  };
  for (int i = 0; i < 5; ++i) announce(0, 64);  // the same chunk, all before any was fetched: 320 of 200 bytes
  while (alone.progress()) {
  }
  for (const uint64_t context : std::exchange(script.fetching, {})) alone.on_fetched(context, true);
  for (uint64_t at = 64; at < kBlock; at += 64) announce(at, std::min<uint64_t>(64, kBlock - at));
  while (alone.progress()) {
  }
  for (const uint64_t context : std::exchange(script.fetching, {})) alone.on_fetched(context, true);
  expect_untouched();
  EXPECT_TRUE(outcome.contains(0)) << "counts past the end and waits for ever";
}

TEST_F(Hostile, ADoneThatNobodyCanMeanIsIgnored) {
  graph::Graph graph;
  const auto late = graph.pull(1, 3, graph::client_place(address_of(target.data())), kBlock);
  graph.offer(1, 0, graph::client_place(address_of(target.data())), kBlock, late);
  honest->post(team, 0, std::move(graph), 0);
  settle();
  say(about(Kind::done, 0, 0, 1));  // not asked for
  say(about(Kind::pull, 0, 0, 1));
  settle();
  say(about(Kind::done, 0, 0, 1));  // asked for, but not there yet
  settle();
  for (uint64_t at = 0; at < kBlock; at += 50) say(data(kBlock, at), 50);
  settle();
  EXPECT_EQ(outcome.count(0), 0U) << "the block was not taken by anybody";
  say(about(Kind::done, 0, 0, 1));
  expect_untouched();
  EXPECT_EQ(outcome[0], OFFPATH_OK);
}

// A neighbour that offers its block and takes the offer back while it is being copied.
TEST_F(Hostile, AnOfferTakenBackIsNotCopiedOn) {
  engine::TeamSpec spec;
  spec.id.bytes[0] = 3;
  spec.client = kClient;
  spec.members = {{true, 0, {}}, {true, 0, {}}};
  team = honest->add_team(std::move(spec)).value();
  graph::Graph graph;
  graph.pull(1, 0, graph::client_place(address_of(target.data())), kBlock);
  honest->post(team, 0, std::move(graph), 0);
  Message fail;
  fail.kind = Kind::fail;
  fail.pull_id = pull_for().pull_id;
  fail.status = OFFPATH_ERR_STATE;
  honest->on_neighbour_offer(fail.pull_id, client_memory, address_of(source.data()), kBlock);
  honest->progress();
  if (ports_are_late()) {  // the first chunk is on its way, and comes to its end
    while (client_memory->writes == 0) late_port->step(), honest->progress();
  }
  EXPECT_GE(client_memory->writes, 1);
  honest->on_neighbour_message(fail, {});
  settle();
  EXPECT_EQ(outcome[0], OFFPATH_ERR_STATE);
  expect_untouched();
  EXPECT_LE(client_memory->writes, ports_are_late() ? 3 : 1) << "what was in flight";
}

// Not an attack: a team made after the peer was lost must not wait for it.
TEST_F(Hostile, ATeamMadeAfterItsMemberWasLostDoesNotHang) {
  post();
  finish_well();
  network.cut(1);
  settle();
  EXPECT_EQ(lost, std::set<uint32_t>{1});
  team = join(2, 0);
  post(7);
  EXPECT_TRUE(outcome.contains(7)) << "waits for ever";
  EXPECT_EQ(outcome[7], OFFPATH_ERR_NOT_STARTED);
}

}  // namespace
}  // namespace offpath::testing
