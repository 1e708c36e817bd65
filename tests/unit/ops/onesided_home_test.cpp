// SPDX-License-Identifier: BSD-3-Clause
// A service that dies at any write to the window, and the process that takes its window over from the journal: what is atomic is
// done once, whatever was answered (docs/design/0044-recovery.md, Windows). OFFPATH_TEST_SEED repeats one program.
#include "onesided_target.hpp"
#include "ops/onesided/home.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

namespace offpath::ops::onesided {
namespace {

struct Killed {};

// Dies at one write, of which a part is done.
class Mortal : public memory::Port {
 public:
  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket) const override {
    memcpy(to, reinterpret_cast<const void*>(address), bytes);
    return {};
  }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket) const override {
    const bool dies = left == 0;
    const size_t part = dies ? std::min<size_t>(last_part, bytes) : bytes;
    memcpy(reinterpret_cast<void*>(address), from, part);
    if (dies) throw Killed();
    --left;
    return {};
  }
  mutable uint64_t left = UINT64_MAX;
  size_t last_part = 0;
};

constexpr uint32_t kMembers = 3;
constexpr uint64_t kCounters = 4096;  // of 8 bytes

class Death {
 public:
  explicit Death(uint64_t seed) : random_(seed), journal_((remote::journal_bytes(kMembers) + 7) / 8) {
    EXPECT_TRUE(target_.open(kClient, kTeam, kWindow, base(), 8 * kCounters, false, journal()).ok());
    port_->left = random_() % 60;
    port_->last_part = random_() % 3 == 0 ? random_() % 9 : random_() % (20 << 10);
  }

  void run() {
    try {
      for (int i = 0; i < 40; ++i) step();
    } catch (const Killed&) {
    }
    Home home(kMembers, false, base(), memory::make_direct());
    ASSERT_TRUE(home.attach(base(), 8 * kCounters));
    home.take_over({bytes(), remote::journal_bytes(kMembers)});
    for (uint32_t from = 0; from < kMembers; ++from) {
      for (const Posted& posted : posted_[from]) {
        if (!posted.answered) again(home, from, posted);
      }
    }
    uint64_t sum = 0;
    for (const uint64_t counter : window_) sum += counter;
    EXPECT_EQ(sum, expected_);
    std::sort(fetched_.begin(), fetched_.end());
    std::vector<uint64_t> all(fetched_.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(fetched_, all) << "what counters gave out";
  }

 private:
  struct Posted {
    Body wanted;
    std::vector<uint8_t> data;
    bool answered = false;
  };
  uint64_t base() const { return reinterpret_cast<uint64_t>(window_.data()); }
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(journal_.data()); }
  std::shared_ptr<remote::Journal> journal() {
    return written_ = std::make_shared<remote::Journal>(bytes(), kMembers, nullptr);
  }

  // Counter 0 gives out numbers; the others are added to.
  void step() {
    const auto from = static_cast<uint32_t>(random_() % kMembers);
    Posted posted;
    Body& wanted = posted.wanted;
    wanted.window = kWindow;
    wanted.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
    wanted.number = numbers_[from]++;
    const bool fetches = random_() % 2 == 0, is_long = !fetches && random_() % 4 == 0;
    wanted.kind = fetches ? OFFPATH_GET_ACCUMULATE : OFFPATH_ACCUMULATE;
    const uint64_t count = fetches ? 1 : is_long ? 200 + random_() % 3000 : 1 + random_() % 20;
    wanted.bytes = 8 * count;
    wanted.offset = fetches ? 0 : 8 * (1 + random_() % (kCounters - count - 1));
    posted.data.resize(wanted.bytes);
    for (uint64_t i = 0; i < count; ++i) posted.data[8 * i] = 1;
    if (!fetches) expected_ += count;
    if (fetches) ++expected_;
    if (!is_long) wanted.data = posted.data;
    posted_[from].push_back(posted);
    Posted& kept = posted_[from].back();
    is_long ? reduce(from, kept) : ask(from, kept);
  }

  void ask(uint32_t from, Posted& posted) {
    const Answer answer = target_.on_request(kClient, kTeam, from, ++last_, port_, encode(posted.wanted));
    ASSERT_EQ(answer.kind, Answer::Kind::reply);
    ASSERT_TRUE(answer.status.ok()) << answer.status.text();
    if (random_() % 4 == 0) return;  // it gets lost
    posted.answered = true;
    if (!answer.payload.empty()) note_fetched(answer.payload);
  }

  // As the graph of a long one does it, in pieces.
  void reduce(uint32_t from, Posted& posted) {
    written_->begin(from, posted.wanted.number);
    const auto through = remote::make_journaled(port_, written_);
    for (uint64_t at = 0; at < posted.wanted.bytes;) {
      const uint64_t part = std::min<uint64_t>(8 * (1 + random_() % 4000), posted.wanted.bytes - at);
      const auto* there = reinterpret_cast<const uint64_t*>(base() + posted.wanted.offset + at);
      std::vector<uint64_t> after(there, there + part / 8);
      for (uint64_t& value : after) ++value;
      ASSERT_TRUE(through->write(reinterpret_cast<uint64_t>(there), after.data(), part).ok());
      at += part;
    }
    written_->end();
    posted.answered = random_() % 4 != 0;
  }

  void again(Home& home, uint32_t from, const Posted& posted) {
    Body body = posted.wanted;
    body.data.clear();
    const Home::Outcome outcome = home.perform(from, encode(body), posted.data, true);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.text();
    if (fetches(posted.wanted.kind)) note_fetched(outcome.fetched);
  }

  void note_fetched(const std::vector<uint8_t>& value) {
    ASSERT_EQ(value.size(), 8U);
    uint64_t number = 0;
    memcpy(&number, value.data(), 8);
    fetched_.push_back(number);
  }

  std::mt19937_64 random_;
  std::vector<uint64_t> journal_;
  std::vector<uint64_t> window_ = std::vector<uint64_t>(kCounters);
  std::shared_ptr<Mortal> port_ = std::make_shared<Mortal>();
  std::shared_ptr<remote::Journal> written_;
  Target target_{[](RequestId, Answer) {}};
  RequestId last_ = 0;
  uint64_t numbers_[kMembers] = {};
  std::vector<Posted> posted_[kMembers];
  std::vector<uint64_t> fetched_;
  uint64_t expected_ = 0;
};

TEST(OnesidedHome, AtomicsAreDoneOnceWheneverTheServiceDies) {
  const char* seed_text = std::getenv("OFFPATH_TEST_SEED");
  const uint64_t first = seed_text == nullptr ? std::random_device{}() : std::strtoull(seed_text, nullptr, 0);
  for (uint64_t seed = first; seed < first + (seed_text == nullptr ? 3000 : 1); ++seed) {
    Death(seed).run();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "OFFPATH_TEST_SEED=" << seed;
  }
}

TEST(OnesidedHome, NobodyIsGrantedBeforeAllHaveSaidWhatTheyHold) {
  Home home(3, false, 0, memory::make_direct());
  home.note_held(0, Home::Held::nothing);
  EXPECT_TRUE(home.lock(0, true).ok());
  EXPECT_FALSE(home.lock(0, true).ok()) << "twice";
  EXPECT_FALSE(home.lock(1, true).ok()) << "it has not said what it holds";
  home.note_held(1, Home::Held::exclusive);
  EXPECT_TRUE(home.grant().empty());
  home.note_held(2, Home::Held::nothing);
  EXPECT_TRUE(home.grant().empty()) << "member 1 holds it";
  EXPECT_TRUE(home.lock(2, false).ok());
  EXPECT_FALSE(home.unlock(2).ok());
  EXPECT_TRUE(home.unlock(1).ok());
  EXPECT_EQ(home.grant(), std::vector<uint32_t>{0});
  home.forget(0);
  EXPECT_EQ(home.grant(), std::vector<uint32_t>{2});
  EXPECT_TRUE(home.grant().empty());
}

TEST(OnesidedHome, WithoutAJournalNobodyKnowsOfAtomics) {
  uint64_t counter = 0;
  Home home(2, true, 0, memory::make_direct());
  ASSERT_TRUE(home.attach(reinterpret_cast<uint64_t>(&counter), 8));
  home.take_over({});
  Body sum;
  sum.window = kWindow;
  sum.kind = OFFPATH_ACCUMULATE;
  sum.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
  sum.offset = reinterpret_cast<uint64_t>(&counter);
  sum.bytes = 8;
  const std::vector<uint8_t> one{1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(home.perform(1, encode(sum), one, true).status.code(), OFFPATH_ERR_SERVICE_LOST);
  EXPECT_EQ(counter, 0U);
  EXPECT_TRUE(home.perform(1, encode(sum), one, false).status.ok());
  EXPECT_EQ(counter, 1U);
  EXPECT_EQ(home.perform(1, encode(sum), {}, false).status.code(), OFFPATH_ERR_ARGUMENT) << "without its data";
  sum.bytes = 16;
  EXPECT_EQ(home.perform(1, encode(sum), std::vector<uint8_t>(16), false).status.code(), OFFPATH_ERR_RANGE);
}

TEST_F(OnesidedTarget, GivenUpItRefusesAsALostMember) {
  open();
  bool released = false;
  ASSERT_TRUE(target_.give_up(kClient, kTeam, kWindow, [&] { released = true; }).ok());
  EXPECT_TRUE(released);
  EXPECT_EQ(ask(put(0, {1})).status.code(), OFFPATH_ERR_PEER_LOST);
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_SHARED)).status.code(), OFFPATH_ERR_PEER_LOST);
  EXPECT_TRUE(untouched());
  EXPECT_TRUE(target_.close(kClient, kTeam, kWindow, [] {}).ok());
  EXPECT_EQ(ask(put(0, {1})).status.code(), OFFPATH_ERR_RANGE);
}

// The process of who holds the lock goes on when its service dies, and knows nothing of it yet.
TEST_F(OnesidedTarget, NobodyIsGrantedWhatALivingMemberHolds) {
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, base(), kBytes, false, nullptr, true).ok());
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_EXCLUSIVE), 1).kind, Answer::Kind::reply);
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_EXCLUSIVE), 2).kind, Answer::Kind::later);
  const RequestId second = last_;
  target_.lose_member(kClient, kTeam, 1, true);
  EXPECT_EQ(answered(second), OFFPATH_ERR_PEER_LOST);
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_SHARED), 3).status.code(), OFFPATH_ERR_PEER_LOST);
}

// Whoever asks for the rest of it finds it as it was left.
TEST_F(OnesidedTarget, WhatALossHasCutKeepsTheLane) {
  constexpr uint64_t kLong = 4096;
  std::vector<uint64_t> large(kLong / 8), memory(remote::journal_bytes(4) / 8 + 1);
  const auto journal = std::make_shared<remote::Journal>(reinterpret_cast<uint8_t*>(memory.data()), 4, nullptr);
  const auto base = reinterpret_cast<uint64_t>(large.data());
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, base, kLong, false, journal).ok());
  const Answer cut = ask(sum(0, kLong), 1);
  ASSERT_EQ(cut.kind, Answer::Kind::graph);
  const RequestId first = last_;
  ask(sum(8, 8), 2);
  const RequestId second = last_;
  const uint64_t value = 1;
  ASSERT_TRUE(cut.graph.memory->write(base, &value, 8).ok());
  target_.on_answered(kClient, kTeam, first, base::Status::error(OFFPATH_ERR_PEER_LOST, "lost"));
  EXPECT_EQ(answered(second), OFFPATH_ERR_PEER_LOST);
  const auto history =
      remote::History::read({reinterpret_cast<uint8_t*>(memory.data()), remote::journal_bytes(4)}, 4, *memory_);
  ASSERT_TRUE(history);
  EXPECT_EQ(history->done_bytes(1, 0), 8U);
  EXPECT_EQ(history->done_count(1), 0U);
}

}  // namespace
}  // namespace offpath::ops::onesided
