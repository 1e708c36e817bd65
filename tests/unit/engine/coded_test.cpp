// SPDX-License-Identifier: BSD-3-Clause
// Blocks that are compressed on their way: whatever was in them arrives, what was saved is counted, and who cannot read a
// codec gets none. The other tests run with a codec as well (OFFPATH_TEST_CODEC).
#include "../kernels/data.hpp"
#include "cluster.hpp"
#include "engine/coding/compression.hpp"
#include "late_coder.hpp"

#include <algorithm>

namespace offpath::testing {
namespace {

using Data = std::vector<uint8_t>;
using wire::Kind;

engine::Config with(const char* wish) {
  engine::Config config;
  config.chunk_bytes = 4096;
  config.compress = codecs::parse_wish(wish).value();
  return config;
}

class Coded : public ::testing::Test {
 protected:
  void start(engine::Config config, uint64_t seed = 1) {
    cluster = std::make_unique<Cluster>(2, 2, seed, config);
    team = cluster->make_team({0, 1}, 1);
  }
  // 0 sends a block to 1.
  void post(const Data& from, Data& to) {
    graph::Graph zero, one;
    zero.offer(1, 0, graph::client_place(address_of(from.data())), from.size());
    one.pull(0, 0, graph::client_place(address_of(to.data())), to.size());
    cluster->engine_of(0).post(team[0], number, std::move(zero), number);
    cluster->engine_of(1).post(team[1], number, std::move(one), number);
    ++number;
  }
  Data send(const Data& from) {
    Data to(from.size(), 0xEE);
    post(from, to);
    while (cluster->settle(), coder != nullptr && coder->step()) {
    }
    EXPECT_EQ(cluster->outcome(0, number - 1), OFFPATH_OK);
    EXPECT_EQ(cluster->outcome(1, number - 1), OFFPATH_OK);
    return to;
  }
  const engine::Traffic& sent() const { return cluster->engine_of(0).traffic(); }
  size_t chunks(Kind kind) const {
    const auto& kinds = cluster->fabric_of(0).sent;
    return static_cast<size_t>(std::count(kinds.begin(), kinds.end(), kind));
  }

  std::unique_ptr<LateCoder> coder;  // null: the engine's own
  std::unique_ptr<Cluster> cluster;
  std::vector<engine::TeamHandle> team;
  uint64_t number = 0;
};

TEST_F(Coded, WhatIsInABlockArrives) {
  for (const char* wish : {"lz4", "zstd:shuffle=8", "deflate", "zlib:level=6,shuffle=4", "auto"}) {
    SCOPED_TRACE(wish);
    number = 0;
    start(with(wish));
    for (const size_t bytes : {4097, 8000, 100'000}) {
      for (const Data& data : {text_bytes(bytes), smooth_doubles(bytes), random_bytes(bytes)}) {
        ASSERT_EQ(send(data), data) << bytes;
      }
    }
    EXPECT_EQ(cluster->engine_of(1).refused_count(), 0U);
  }
}

TEST_F(Coded, WhatIsSavedIsCounted) {
  start(with("zstd"));
  const Data data = text_bytes(100'000);
  ASSERT_EQ(send(data), data);
  EXPECT_EQ(sent().sent_bytes, data.size());
  EXPECT_EQ(sent().coded_bytes, data.size());
  EXPECT_LT(sent().wire_bytes, data.size() / 10);
  EXPECT_GT(sent().wire_bytes, 0U);
  EXPECT_EQ(cluster->engine_of(1).traffic().received_bytes, data.size());
  EXPECT_EQ(cluster->told(1, 0).step_bytes, data.size());
}

TEST_F(Coded, WhatDoesNotShrinkGoesAsItIs) {
  start(with("lz4"));
  const Data data = random_bytes(40 * 4096);
  ASSERT_EQ(send(data), data);
  EXPECT_EQ(sent().coded_bytes, 0U);
  EXPECT_EQ(chunks(Kind::data), 40U);
  // Both kinds in one block.
  Data mixed = random_bytes(100 * 4096);
  std::fill(mixed.begin() + 50 * 4096, mixed.end(), 7);
  ASSERT_EQ(send(mixed), mixed);
  EXPECT_GT(sent().coded_bytes, 20 * 4096U) << "it must be tried again";
}

TEST_F(Coded, NobodyGetsWhatHeCannotRead) {
  LateCoder knows_lz4(1, codecs::bit_of(codecs::CodecId::lz4));
  engine::Config config = with("zstd");
  config.coder = &knows_lz4;  // of both, but who sends is not asked what it can write
  start(config);
  const Data data = text_bytes(50'000);
  ASSERT_EQ(send(data), data);
  EXPECT_EQ(sent().coded_bytes, 0U);
}

TEST_F(Coded, ACoderMayAnswerLater) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    coder = std::make_unique<LateCoder>(seed);
    engine::Config config = with("zstd:shuffle=8");
    config.coder = coder.get();
    number = 0;
    start(config, seed);
    for (const Data& data : {smooth_doubles(100'000), text_bytes(5000)}) ASSERT_EQ(send(data), data);
    EXPECT_GT(sent().coded_bytes, 0U);
  }
}

// Whoever goes while chunks are with the coder: nobody touches their memory, nobody waits for ever.
TEST_F(Coded, WhoIsLostMeanwhile) {
  const Data from = text_bytes(60'000);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    coder = std::make_unique<LateCoder>(seed);
    engine::Config config = with("lz4");
    config.coder = coder.get();
    number = 0;
    start(config, seed);
    Data to(from.size());
    post(from, to);
    for (uint64_t i = 0; i < 10 * seed; ++i) cluster->step(), i % 3 == 0 && coder->step();
    switch (seed % 3) {
      case 0:
        cluster->cut_node(1);
        break;
      case 1:
        cluster->kill_client(0);
        break;
      default:
        cluster->kill_client(1);
    }
    while (cluster->settle(), coder->step()) {
    }
    const uint32_t left = seed % 3 == 1 ? 1 : 0;
    EXPECT_TRUE(cluster->outcome(left, 0).has_value()) << "it waits for ever";
  }
}

// By a clock of the test's: a link on which a block takes seconds, however long it is, and codecs that take no time.
class CodedSlowly : public Coded {
 protected:
  void start(const char* wish) {
    engine::Config config = with(wish);
    config.now_ns = [this] { return now; };
    Coded::start(config);
  }
  void send_slowly(const Data& from) {
    Data to(from.size());
    post(from, to);
    for (int idle = 0; idle < 100; idle = cluster->step() ? 0 : idle + 1) now += 10'000'000;
    EXPECT_EQ(to, from);
  }
  uint64_t now = 0;
};

TEST_F(CodedSlowly, AutoFindsOutWhatPays) {
  start("auto");
  const Data data = text_bytes(1 << 20);
  send_slowly(data);
  EXPECT_LE(sent().coded_bytes, data.size() - (64 << 10)) << "so much is sent before anything is known of the link";
  for (int i = 0; i < 4; ++i) send_slowly(data);
  EXPECT_GE(sent().coded_bytes, 3 * data.size());
  const uint64_t before = sent().coded_bytes;
  for (int i = 0; i < 4; ++i) send_slowly(random_bytes(1 << 20));
  EXPECT_EQ(sent().coded_bytes, before);
  EXPECT_GT(cluster->told(0, 0).saved_ns, 0);
}

TEST_F(CodedSlowly, TheTimeThatAFixedChoiceSavesIsEstimated) {
  start("lz4");
  for (int i = 0; i < 4; ++i) send_slowly(text_bytes(1 << 20));
  const double saved = cluster->told(0, 0).saved_ns;
  EXPECT_GT(saved, 0);
  EXPECT_EQ(cluster->told(1, 0).saved_ns, 0) << "it has sent nothing";
  for (int i = 0; i < 2; ++i) send_slowly(random_bytes(1 << 20));
  EXPECT_EQ(cluster->told(0, 0).saved_ns, saved);
}

// As it is reckoned before coding: what is coded while others wait holds nobody up, and who decodes may be slower than the link.
TEST(SavedTime, IsWhatAutoReckons) {
  uint64_t now = 5000;
  engine::Config config;
  config.now_ns = [&] { return now; };
  const auto network = make_network(1);
  const auto fabric = network->make_endpoint();
  const engine::Compression compression(config.now_ns, config.coder, *fabric);
  const Data plain(1000);
  engine::CodedChunk job;
  job.in = plain;
  job.method = {codecs::CodecId::lz4, 1, 0};
  job.since_ns = 1000;
  EXPECT_EQ(compression.saved_ns(job, 200), 0) << "nobody knows the link";
  job.path.known = true;
  job.path.link_ns = 10;
  EXPECT_EQ(compression.saved_ns(job, 200), 10'000 - 2000 - 4000);
  job.path.waiting_ns = 3000;
  EXPECT_EQ(compression.saved_ns(job, 200), 10'000 - 2000 - 1000);
  job.path.decode_ns[static_cast<size_t>(codecs::CodecId::lz4)] = 9;
  EXPECT_EQ(compression.saved_ns(job, 200), 10'000 - 9000);
  now = 20'000;
  EXPECT_EQ(compression.saved_ns(job, 200), 10'000 - 2000 - 16'000) << "it took longer than it saved";
}

TEST_F(Coded, WhatWouldBeSavedIsSampled) {
  start(with("sample"));
  for (const Data& data : {text_bytes(1 << 20), random_bytes(1 << 20)}) ASSERT_EQ(send(data), data);
  EXPECT_EQ(sent().coded_bytes, 0U);
  const codecs::Chooser::Sampled once = cluster->told(0, 0).sampled;
  EXPECT_GT(once.bytes, 0U);
  EXPECT_LT(once.left, once.bytes / 4) << "of the first block";
  for (int i = 0; i < 16; ++i) ASSERT_EQ(send(random_bytes(1 << 20)).size(), size_t{1} << 20);
  EXPECT_EQ(cluster->told(0, 0).sampled.bytes, 2 * once.bytes) << "and one of each 16 MiB";
}

// Numbers of which something may be lost: those that a member has itself, where it says that they are numbers.
class CodedNumbers : public Coded {
 protected:
  void SetUp() override {
    if (!codecs::is_built(codecs::CodecId::zfp)) GTEST_SKIP() << "this build has no zfp";
  }
  static double distance(const Data& one, const Data& other) {
    double largest = 0;
    for (size_t i = 0; i < one.size(); i += sizeof(double)) {
      double a, b;
      std::memcpy(&a, &one[i], sizeof(a)), std::memcpy(&b, &other[i], sizeof(b));
      largest = std::max(largest, std::fabs(a - b));
    }
    return largest;
  }
  // 0 sends it to 1, and 1 passes it on to 2. What the two have.
  std::pair<Data, Data> pass_on(const Data& from, kernels::Reduction reduction, const char* of_team = nullptr) {
    cluster = std::make_unique<Cluster>(3, 3, 1, config);
    team = cluster->make_team({0, 1, 2}, 1, of_team);
    Data one(from.size()), two(from.size());
    graph::Graph graphs[3];
    graphs[0].offer(1, 0, graph::client_place(address_of(from.data())), from.size());
    const uint32_t pull = graphs[1].pull(0, 0, graph::client_place(address_of(one.data())), one.size());
    graphs[1].offer(2, 0, graph::client_place(address_of(one.data())), one.size(), pull);
    graphs[2].pull(1, 0, graph::client_place(address_of(two.data())), two.size());
    for (uint32_t rank = 0; rank < 3; ++rank) {
      graphs[rank].reduction = reduction;
      cluster->engine_of(rank).post(team[rank], 0, std::move(graphs[rank]), 0);
    }
    cluster->settle();
    for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(cluster->outcome(rank, 0), OFFPATH_OK);
    return {one, two};
  }
  engine::Config config = with("zfp:abs=1e-4");
  const Data data = smooth_doubles(80'000);
};

TEST_F(CodedNumbers, ArriveWithinTheBoundAndLoseNothingTwice) {
  const auto [one, two] = pass_on(data, {OFFPATH_OP_NONE, OFFPATH_ELEMENT_F64});
  EXPECT_NE(one, data);
  EXPECT_LE(distance(one, data), 1e-4);
  EXPECT_EQ(one, two) << "what was received is passed on as it is";
  EXPECT_EQ(sent().lossy_bytes, data.size());
  EXPECT_LT(sent().wire_bytes, data.size() / 2);
  EXPECT_EQ(cluster->told(0, 0).largest_error, distance(one, data));
  EXPECT_EQ(cluster->engine_of(1).traffic().lossy_bytes, 0U);
}

TEST_F(CodedNumbers, GoToWhoCanReadThemOnly) {
  const auto network = make_network(1);
  const auto fabric = network->make_endpoint();
  engine::Compression compression(config.now_ns, nullptr, *fabric);
  graph::Graph graph;
  graph.reduction = {OFFPATH_OP_NONE, OFFPATH_ELEMENT_F64};
  graph.offer(1, 0, graph::client_place(address_of(data.data())), data.size());
  const auto method_for = [&](uint32_t readable) {
    return compression.plan(config.compress, graph, graph.exports[0], data.size(), 1, readable).method.codec;
  };
  EXPECT_EQ(method_for(codecs::all_codecs()), codecs::CodecId::zfp);
  EXPECT_EQ(method_for(codecs::all_codecs() & ~codecs::bit_of(codecs::CodecId::zfp)), codecs::CodecId::none);
}

// Chunks of memory that is behind a link have many lengths. What comes behind half a number would go as it is.
TEST_F(CodedNumbers, NoChunkEndsWithinOne) {
  config.chunk_bytes = 256 << 10;
  const Data odd = smooth_doubles(1'000'008);
  const Data one = pass_on(odd, {OFFPATH_OP_NONE, OFFPATH_ELEMENT_F64}).first;
  EXPECT_LE(distance(one, odd), 1e-4);
  EXPECT_EQ(sent().lossy_bytes, odd.size());
}

TEST_F(CodedNumbers, WhatIsNoNumberLosesNothing) {
  EXPECT_EQ(pass_on(data, {}).first, data);
  EXPECT_EQ(pass_on(data, {OFFPATH_OP_NONE, OFFPATH_ELEMENT_I64}).first, data);
  EXPECT_EQ(sent().lossy_bytes, 0U);
}

TEST_F(CodedNumbers, WhatIsReducedLosesSomethingOnlyIfThatIsWished) {
  const kernels::Reduction sum{OFFPATH_OP_SUM, OFFPATH_ELEMENT_F64};
  EXPECT_EQ(pass_on(data, sum).first, data);
  config = with("zfp:abs=1e-4,reductions");
  EXPECT_NE(pass_on(data, sum).first, data);
}

TEST_F(CodedNumbers, ATeamHasAWishOfItsOwn) {
  config = with("off");
  EXPECT_NE(pass_on(data, {OFFPATH_OP_NONE, OFFPATH_ELEMENT_C64}, "zfp:rel=1e-3").first, data);
  EXPECT_EQ(pass_on(data, {}, "zstd").first, data);
  EXPECT_GT(sent().coded_bytes, 0U);
  config = with("zfp:abs=1e-4");
  EXPECT_EQ(pass_on(data, {OFFPATH_OP_NONE, OFFPATH_ELEMENT_F64}, "off").first, data);
  EXPECT_EQ(sent().coded_bytes, 0U);
}

}  // namespace
}  // namespace offpath::testing
