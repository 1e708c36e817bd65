// SPDX-License-Identifier: BSD-3-Clause
// Memory at the other end of a link: what is read and written, how much of it is under way, and what becomes of that when
// the link is lost.
#include "../engine/agent_port.hpp"
#include "../engine/walls.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace offpath::testing {
namespace {

struct Told : memory::Sink {
  void put(uint64_t ticket, const base::Status& status) override { ended.emplace_back(ticket, status.code()); }
  std::vector<std::pair<uint64_t, offpath_status_t>> ended;
};

uint64_t at(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

class Far : public ::testing::TestWithParam<bool> {  // can the agent use the memory in place?
 protected:
  Far() { walls_->views = GetParam(); }
  void settle() {
    for (int idle = 0; idle < 100; ++idle) {
      if (port_.step()) idle = 0;
    }
  }
  std::shared_ptr<Walls> walls_ = std::make_shared<Walls>();
  AgentPort port_{walls_, 5};
  Told told_;
};

// Longer than an access may be, and than what may be under way.
constexpr size_t kLong = wire::kMaxAccessBytes * 2 + 12345;

TEST_P(Far, AnyLengthIsReadAndWritten) {
  std::vector<uint8_t> there(kLong), here(kLong);
  std::iota(there.begin(), there.end(), uint8_t{3});
  EXPECT_TRUE(port_.read(here.data(), at(there.data()), kLong, {&told_, 1}).is_later());
  EXPECT_TRUE(told_.ended.empty());
  settle();
  EXPECT_EQ(here, there);
  std::reverse(here.begin(), here.end());
  EXPECT_TRUE(port_.write(at(there.data()), here.data(), kLong, {&told_, 2}).is_later());
  settle();
  EXPECT_EQ(here, there);
  EXPECT_EQ(told_.ended, (std::vector<std::pair<uint64_t, offpath_status_t>>{{1, OFFPATH_OK}, {2, OFFPATH_OK}}));
  EXPECT_TRUE(port_.read(here.data(), at(there.data()), 0, {&told_, 3}).ok());
}

TEST_P(Far, StretchesAreReadAndWritten) {
  std::vector<uint8_t> there(1 << 16), here(3 * 5000);
  std::iota(there.begin(), there.end(), uint8_t{1});
  std::vector<memory::Range> ranges;
  for (size_t i = 0; i < 5000; ++i) ranges.push_back({static_cast<int64_t>(at(there.data() + i * 13)), 3});
  EXPECT_TRUE(port_.gather(here.data(), ranges, {&told_, 1}).is_later());
  settle();
  for (size_t i = 0; i < here.size(); ++i) ASSERT_EQ(here[i], there[i / 3 * 13 + i % 3]) << i;
  for (uint8_t& byte : here) byte = static_cast<uint8_t>(~byte);
  EXPECT_TRUE(port_.scatter(ranges, here.data(), {&told_, 2}).is_later());
  settle();
  for (size_t i = 0; i < here.size(); ++i) ASSERT_EQ(here[i], there[i / 3 * 13 + i % 3]) << i;
  EXPECT_EQ(told_.ended.size(), 2U);
}

TEST_P(Far, AFaultIsOne) {
  if (GetParam()) return;
  uint8_t here[8192] = {};
  EXPECT_TRUE(port_.read(here, 64, sizeof(here), {&told_, 1}).is_later());
  EXPECT_TRUE(port_.write(64, here, 10, {&told_, 2}).is_later());
  settle();
  std::sort(told_.ended.begin(), told_.ended.end());
  EXPECT_EQ(told_.ended, (std::vector<std::pair<uint64_t, offpath_status_t>>{{1, OFFPATH_ERR_MEMORY_FAULT},
                                                                             {2, OFFPATH_ERR_MEMORY_FAULT}}));
}

TEST_P(Far, EverythingEndsWithTheLink) {
  std::vector<uint8_t> there(kLong), here(kLong);
  for (uint64_t i = 0; i < 6; ++i) {
    const auto outcome = i % 2 == 0 ? port_.read(here.data(), at(there.data()), 3000, {&told_, i})
                                    : port_.write(at(there.data()), here.data(), 3000, {&told_, i});
    EXPECT_TRUE(outcome.is_later());
  }
  for (int i = 0; i < 3; ++i) port_.step();
  port_.cut();
  settle();
  EXPECT_EQ(told_.ended.size(), 6U);
  EXPECT_EQ(port_.read(here.data(), at(there.data()), 8, {&told_, 9}).status().code(), OFFPATH_ERR_PEER_LOST);
}

INSTANTIATE_TEST_SUITE_P(InPlaceOrNot, Far, ::testing::Bool());

struct Nobody : agent::LinkOwner {
  agent::Place place_for(const wire::LinkMessage&, size_t) override { return {}; }
  void on_message(const wire::LinkMessage&, fabric::Bytes) override {}
  void on_entry(const wire::LinkEntry&) override {}
  void on_sent(uint64_t) override {}
  void on_lost(const char*) override {}
};

// Its owner may have freed it by then.
TEST(FarGet, APlaceIsItsOwnersAgainWhenTheBytesHaveCome) {
  fabric::LoopbackNetwork network(1);
  Nobody owner;
  agent::Link link(network.make_endpoint(), owner);
  const auto memory = std::make_shared<agent::FarMemory>([] {});
  Told told;
  uint8_t here[64] = {}, elsewhere[64] = {};
  EXPECT_TRUE(memory->port_of(1)->read(here, 4096, sizeof(here), {&told, 1}).is_later());
  EXPECT_TRUE(memory->move(link));
  wire::LinkMessage got, ended;
  got.kind = wire::LinkKind::got;
  ended.kind = wire::LinkKind::ended;
  got.number = ended.number = 1;
  got.bytes = sizeof(here);
  ended.status = OFFPATH_ERR_MEMORY_FAULT;
  EXPECT_EQ(memory->place_for(got, sizeof(here)).data, here);
  EXPECT_EQ(memory->place_for(got, sizeof(here)).data, nullptr);
  memory->on_message(ended, {});
  memory->on_message(got, elsewhere);
  EXPECT_TRUE(told.ended.empty());
  memory->on_message(got, here);
  EXPECT_EQ(told.ended, (std::vector<std::pair<uint64_t, offpath_status_t>>{{1, OFFPATH_OK}}));
}

}  // namespace
}  // namespace offpath::testing
