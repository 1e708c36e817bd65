// SPDX-License-Identifier: BSD-3-Clause
// The stream of a link over a fabric that lets messages overtake each other, and its end.
#include "agent/link.hpp"

#include "fabric/loopback/loopback.hpp"

#include <gtest/gtest.h>

namespace offpath::agent {
namespace {

struct End : LinkOwner {
  Place place_for(const wire::LinkMessage&, size_t) override { return {}; }
  void on_message(const wire::LinkMessage&, fabric::Bytes) override { ++messages; }
  void on_entry(const wire::LinkEntry& entry) override {
    entries.emplace_back(entry.client, std::vector<uint8_t>(entry.body.begin(), entry.body.end()));
  }
  void on_sent(uint64_t) override {}
  void on_lost(const char*) override { ++losses; }
  std::vector<std::pair<uint32_t, std::vector<uint8_t>>> entries;
  int messages = 0, losses = 0;
};

class TwoEnds : public ::testing::TestWithParam<uint64_t> {
 protected:
  TwoEnds() : network_(GetParam()), left_(network_.make_endpoint(), here_), right_(network_.make_endpoint(), there_) {
    EXPECT_TRUE(left_.connect(right_.fabric().address()).ok());
    EXPECT_TRUE(right_.connect(left_.fabric().address()).ok());
  }
  void settle() {
    for (int idle = 0; idle < 50; ++idle) {
      const bool busy = left_.progress() | right_.progress();
      if (busy) idle = 0;
    }
  }
  fabric::LoopbackNetwork network_;
  End here_, there_;
  Link left_, right_;
};

TEST_P(TwoEnds, EntriesOfAnyLengthArriveInOrder) {
  std::vector<std::pair<uint32_t, std::vector<uint8_t>>> sent;
  for (uint32_t i = 0; i < 60; ++i) {
    std::vector<uint8_t> body(i % 7 == 3 ? 30000 : i * 13, static_cast<uint8_t>(i));
    left_.add(wire::EntryKind::words, i, body);
    sent.emplace_back(i, std::move(body));
    if (i % 5 == 0) left_.progress();
  }
  settle();
  EXPECT_EQ(there_.entries, sent);
  EXPECT_TRUE(here_.entries.empty());
}

TEST_P(TwoEnds, ALostLinkIsSaidOnce) {
  network_.cut(1);
  settle();
  EXPECT_EQ(here_.losses, 1);
  EXPECT_TRUE(left_.lost());
  left_.add(wire::EntryKind::gone, 1);
  left_.send({});
  settle();
  EXPECT_EQ(here_.losses, 1);
}

TEST_P(TwoEnds, WhoSaysNonsenseIsGivenUp) {
  wire::LinkMessage message;
  message.number = 0;
  const std::vector<uint8_t> nonsense(20, 200);
  left_.send(message, nonsense);  // a round of no entries
  settle();
  EXPECT_EQ(there_.losses, 1);
  EXPECT_TRUE(there_.entries.empty());
}

// The first round never comes.
TEST_P(TwoEnds, RoundsThatHaveOvertakenOthersTakeABoundedMemory) {
  const std::vector<uint8_t> round(wire::kMaxAccessBytes);
  wire::LinkMessage message;
  for (message.number = 1; message.number <= 70; ++message.number) left_.send(message, round);
  settle();
  EXPECT_EQ(there_.losses, 1);
}

INSTANTIATE_TEST_SUITE_P(Seeds, TwoEnds, ::testing::Range<uint64_t>(1, 9));

}  // namespace
}  // namespace offpath::agent
