// SPDX-License-Identifier: BSD-3-Clause
// What the RDMA fabric does besides what every fabric must: who copies what, and who may. Parts need a device.
#include "base/memfd.hpp"
#include "fabric/rdma/words.hpp"

#include "../each_fabric.hpp"

#include <fcntl.h>
#include <sys/mman.h>

namespace offpath::fabric {
namespace {

using rdma::decode;
using rdma::encode;
using rdma::Word;

constexpr size_t kLong = 1 << 20;

TEST(RdmaWords, GoThereAndBackAndNothingElseIsOne) {
  const std::vector<uint8_t> rest(kMaxHeaderBytes, 7);
  Word word;
  word.kind = Word::Kind::offer;
  word.to = 3, word.you = 4, word.id = 5, word.from = 6, word.key = 7, word.bytes = 8;
  word.end.number = 9, word.end.first = 10, word.end.lid = 11, word.end.mtu = 5, word.end.gid[15] = 12;
  word.rest = rest;
  const auto said = encode(word);
  const auto heard = decode(said);
  ASSERT_TRUE(heard);
  EXPECT_EQ(encode(*heard), said);
  for (size_t bytes = 0; bytes + rest.size() < said.size(); ++bytes) EXPECT_FALSE(decode(Bytes(said).first(bytes)));
  for (const uint8_t kind : {0, 5, 255}) {
    auto wrong = said;
    wrong[0] = kind;
    EXPECT_FALSE(decode(wrong)) << int{kind};
  }
  auto longer = said;
  longer.push_back(0);
  EXPECT_FALSE(decode(longer)) << "no message has such a header";
}

class RdmaTest : public FabricTest {
 protected:
  // From then on payloads are offered.
  void meet() {
    to_b = connect(*a, *b);
    const Data payload = pattern(kLong, 1);
    for (uint64_t i = 0; i < 100 && rdma_counts(*b).read_bytes == 0; ++i) {
      a->send(to_b, Data{0}, payload, i, Of::user_data);
      ASSERT_TRUE(until([&] { return at_b->messages.size() == i + 1 && at_a->sent.size() == i + 1; }));
    }
    ASSERT_GT(rdma_counts(*b).read_bytes, 0U);
    at_b->messages.clear(), at_a->sent.clear();
    before_a = rdma_counts(*a), before_b = rdma_counts(*b);
  }
  void send_one(Bytes payload, Of of = Of::user_data) {
    at_b->messages.clear(), at_a->sent.clear();
    a->send(to_b, Data{1}, payload, 1, of);
    ASSERT_TRUE(until([&] { return at_b->messages.size() == 1 && at_a->sent.size() == 1; }));
    const Data& got = at_b->messages.begin()->second;
    EXPECT_TRUE(std::equal(got.begin(), got.end(), payload.begin(), payload.end()));
  }
  uint64_t read() const { return rdma_counts(*b).read_bytes - before_b.read_bytes; }
  uint64_t bounced() const { return rdma_counts(*b).bounced_bytes - before_b.bounced_bytes; }
  uint64_t by_tcp() const { return rdma_counts(*a).other_bytes - before_a.other_bytes; }

  Peer to_b = 0;
  RdmaCounts before_a, before_b;
};

TEST_P(RdmaTest, NoProcessorCopiesWhatIsSteady) {
  meet();
  const Data payload = pattern(kLong, 2);
  for (int i = 0; i < 5; ++i) send_one(payload);
  EXPECT_EQ(read(), 5 * kLong);
  EXPECT_EQ(bounced() + by_tcp(), 0U);
  EXPECT_GT(rdma_counts(*a).hits, before_a.hits);
  EXPECT_EQ(a->backlog(to_b), 0U);
}

TEST_P(RdmaTest, WhatIsActedUponGoesWithATag) {
  meet();
  send_one(pattern(kLong, 3), Of::interpreted);
  EXPECT_EQ(read(), 0U);
  EXPECT_EQ(by_tcp(), kLong);
}

TEST_P(RdmaTest, MemoryThatMayGoIsCopied) {
  meet();
  const std::vector<uint8_t> other(kLong, 5);  // as of a program whose memory the service does not map
  send_one(other);
  EXPECT_EQ(read(), 0U);
  EXPECT_EQ(by_tcp(), kLong);
  // Read part by part through memory of the endpoint.
  at_b->policy = OnAnnounced::keep;
  const Data payload = pattern(kLong, 6);
  a->send(to_b, Data{9}, payload, 9, Of::user_data);
  ASSERT_TRUE(until([&] { return !at_b->waiting.empty(); }));
  std::vector<uint8_t> place(kLong);
  const auto next = at_b->waiting.front();
  at_b->fetching[77] = {next.header, {}};
  b->fetch(next.handle, place.data(), next.bytes, 77);
  ASSERT_TRUE(until([&] { return at_b->fetching.empty() && at_a->sent.contains(9); }));
  EXPECT_TRUE(std::equal(place.begin(), place.end(), payload.begin(), payload.end()));
  EXPECT_EQ(bounced(), kLong);
}

// Other memory at an address that was registered is other memory to the card, too.
TEST_P(RdmaTest, MemoryThatIsGoneIsForgotten) {
  meet();
  void* at = nullptr;
  for (uint8_t round = 1; round <= 3; ++round) {
    at = mmap(at, kLong, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | (at == nullptr ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    memset(at, round, kLong);
    {
      const base::Steady steady(at, kLong);
      send_one(Bytes(static_cast<uint8_t*>(at), kLong));
    }
    munmap(at, kLong);
  }
  EXPECT_EQ(read(), 3 * kLong);
}

// As a client does that gives memory back which it shares with its service.
TEST_P(RdmaTest, MemoryWithOtherPagesBehindItIsRegisteredAnew) {
  meet();
  auto made = base::Memfd::create("rdma_test", kLong);
  ASSERT_TRUE(made.ok());
  const base::Memfd& memory = made.value();
  for (uint8_t round = 1; round <= 3; ++round) {
    memset(memory.data(), round, kLong);
    send_one(Bytes(memory.data(), kLong));
    ASSERT_EQ(fallocate(memory.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kLong), 0);
  }
  EXPECT_EQ(read(), 3 * kLong);
}

TEST_P(RdmaTest, WhoDoesNotKnowTheKeyMeetsNobody) {
  setenv("OFFPATH_UCX_NET_DEVICES", "lo", 1);
  auto context = open_rdma({9, 9, 9});
  ASSERT_TRUE(context.ok()) << context.status().text();
  auto made = context.value()->make_endpoint();
  ASSERT_TRUE(made.ok()) << made.status().text();
  const auto stranger = std::move(made.value());
  Recorder at_stranger(*stranger);
  const Peer peer = connect(*stranger, *b);
  const Data payload = pattern(kLong, 4);
  stranger->send(peer, Data{1}, payload, 1, Of::user_data);
  ASSERT_TRUE(until([&] { return stranger->progress(), !at_stranger.lost.empty() && !at_stranger.sent.empty(); }));
  EXPECT_FALSE(at_stranger.sent[1]);
  EXPECT_TRUE(at_b->messages.empty() && at_b->announced == 0);
}

INSTANTIATE_TEST_SUITE_P(Card, RdmaTest, ::testing::Values("rdma"));

}  // namespace
}  // namespace offpath::fabric
