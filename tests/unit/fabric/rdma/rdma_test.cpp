// SPDX-License-Identifier: BSD-3-Clause
// What the RDMA fabric does besides what every fabric must: who copies what, and who may. Parts need a device.
#include "base/memfd.hpp"
#include "fabric/rdma/words.hpp"

#include "../each_fabric.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

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
  word.end.number = 9, word.end.first = 10, word.end.lid = 11, word.end.mtu = 5, word.end.reads = 4,
  word.end.gid[15] = 12;
  word.rest = rest;
  const auto said = encode(word);
  const auto heard = decode(said);
  ASSERT_TRUE(heard);
  EXPECT_EQ(encode(*heard), said);
  for (size_t bytes = 0; bytes + rest.size() < said.size(); ++bytes) EXPECT_FALSE(decode(Bytes(said).first(bytes)));
  for (const uint8_t kind : {0, 6, 255}) {
    auto wrong = said;
    wrong[0] = kind;
    EXPECT_FALSE(decode(wrong)) << int{kind};
  }
  word.bytes = (1 << 30) + 1;
  EXPECT_FALSE(decode(encode(word))) << "no fabric carries that";
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

// A page that is copied on write after a fork is another page to the card.
TEST_P(RdmaTest, AForkTakesNoPageAway) {
  meet();
  Data payload = pattern(kLong, 2);
  send_one(payload);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  for (uint8_t round = 1; round <= 3; ++round) {
    std::fill(payload.begin(), payload.end(), round);
    send_one(payload);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(read(), 4 * kLong);
}

// No memory may be locked from here on, by root neither.
class Unlockable {
 public:
  Unlockable() {
    change_right(false);
    EXPECT_EQ(getrlimit(RLIMIT_MEMLOCK, &before_), 0);
    const rlimit none{0, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
  }
  ~Unlockable() {
    setrlimit(RLIMIT_MEMLOCK, &before_);
    change_right(true);
  }

 private:
  static void change_right(bool effective) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2];
    ASSERT_EQ(syscall(SYS_capget, &header, data), 0);
    const uint32_t right = (1U << CAP_IPC_LOCK) & data[0].permitted;
    data[0].effective = effective ? data[0].effective | right : data[0].effective & ~right;
    ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
  }
  rlimit before_{};
};

TEST_P(RdmaTest, MemoryThatMayNotBeLockedIsCopied) {
  meet();
  {
    const Unlockable unlockable;
    for (uint8_t i = 1; i <= 3; ++i) send_one(pattern(3 * kLong, i));
    EXPECT_EQ(by_tcp(), 9 * kLong);
    // Who comes now has no use of the card.
    auto later = net->make();
    const Recorder at_later(*later);
    const Data payload = pattern(kLong, 9);
    later->send(connect(*later, *b), Data{1}, payload, 1, Of::user_data);
    ASSERT_TRUE(until([&] { return later->progress(), at_later.sent.contains(1); }));
    later.reset();
    ASSERT_TRUE(until([&] { return !at_b->lost.empty() || at_b->fetching.empty(); }));
  }
  send_one(pattern(3 * kLong, 4));
  EXPECT_EQ(by_tcp(), 9 * kLong);
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
