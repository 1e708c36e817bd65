// SPDX-License-Identifier: BSD-3-Clause
// What connections have counted, together: how many are asked, and that nothing is left out.
#include "fabric/tcp/counting.hpp"
#include "pair.hpp"

namespace offpath::fabric::tcp {
namespace {

// Made-up connections, by number.
struct System {
  std::map<int, Counted> connections;
  size_t asked = 0;
} made_up;

std::optional<Counted> ask(int socket) {
  ++made_up.asked;
  const auto found = made_up.connections.find(socket);
  return found == made_up.connections.end() ? std::nullopt : std::optional(found->second);
}

class TcpCounting : public ::testing::Test {
 protected:
  TcpCounting() { made_up = {}; }
  // Looks until nothing is to be asked.
  Connection look_out() {
    for (;;) {
      const size_t before = made_up.asked;
      const Connection sum = counting.look();
      EXPECT_LE(made_up.asked - before, Counting::kAsked);
      if (made_up.asked == before) return sum;
    }
  }
  Counting counting{ask};
};

TEST_F(TcpCounting, ManyAreAskedInTurn) {
  constexpr uint64_t kMany = 3000;
  for (int i = 0; i < static_cast<int>(kMany); ++i) {
    made_up.connections[i] = {{.sent = 1, .resent = 2, .disordered = 3, .busy_us = 4, .room_us = 5, .round_us = 7},
                              false};
    EXPECT_EQ(counting.begin(i), static_cast<size_t>(i));
  }
  made_up.connections[kMany - 1].counts.round_us = 9;
  const Connection sum = look_out();
  EXPECT_EQ(sum.count, kMany);
  EXPECT_EQ(sum.sent, kMany);
  EXPECT_EQ(sum.resent, 2 * kMany);
  EXPECT_EQ(sum.disordered, 3 * kMany);
  EXPECT_EQ(sum.busy_us, 4 * kMany);
  EXPECT_EQ(sum.room_us, 5 * kMany);
  EXPECT_EQ(sum.round_us, 9U);
  EXPECT_EQ(made_up.asked, kMany) << "each once";
}

TEST_F(TcpCounting, WhoMovesNothingIsNotAsked) {
  for (int i = 0; i < 100; ++i) {
    made_up.connections[i] = {{.sent = 1}, false};
    counting.begin(i);
  }
  look_out();
  made_up.connections[50].counts.sent = 11;
  counting.note_moved(50);
  counting.note_moved(50);
  made_up.asked = 0;
  EXPECT_EQ(counting.look().sent, 110U);
  EXPECT_EQ(made_up.asked, 1U);
}

// Segments are sent anew by the system alone.
TEST_F(TcpCounting, WhatIsUnderWayIsAskedAgain) {
  made_up.connections[0] = {{.sent = 1}, true};
  counting.begin(0);
  EXPECT_EQ(counting.look().resent, 0U);
  made_up.connections[0].counts.resent = 1;
  EXPECT_EQ(counting.look().resent, 1U);
  made_up.connections[0] = {{.sent = 2, .resent = 2}, false};
  EXPECT_EQ(look_out().resent, 2U);
}

TEST_F(TcpCounting, WhatHasEndedStaysCounted) {
  made_up.connections[0] = {{.sent = 1, .round_us = 9}, true};
  made_up.connections[1] = {{.sent = 5, .round_us = 4}, false};
  counting.begin(0);
  counting.begin(1);
  counting.look();
  made_up.connections[0].counts.sent = 3;
  counting.end(0);
  made_up.connections.clear();
  counting.note_moved(1);  // of which the system does not say anything now
  const Connection sum = look_out();
  EXPECT_EQ(sum.count, 1U);
  EXPECT_EQ(sum.sent, 8U);
  EXPECT_EQ(sum.round_us, 4U);
}

TEST(TcpCounters, OfRealConnectionsStayWhenTheyHaveEnded) {
  Side a(quick()), b(quick());
  const Exchange exchange;
  const Peer to_b = a->connect(b->address()).value();
  exchange.say(*a.endpoint, to_b);
  ASSERT_TRUE(run_until([&] { return Exchange::all_heard(*b.hears) && Exchange::all_sent(*a.hears); },
                        [&] { a->progress(), b->progress(); }));
  const Connection while_here = a->connections();
  EXPECT_EQ(while_here.count, 2U);
  EXPECT_GT(while_here.sent, 0U);
  EXPECT_EQ(while_here.sent, a->connection(to_b).sent);
  a->give_up(to_b);
  a->progress();
  EXPECT_EQ(a->connections().count, 0U);
  EXPECT_GE(a->connections().sent, while_here.sent);
}

}  // namespace
}  // namespace offpath::fabric::tcp
