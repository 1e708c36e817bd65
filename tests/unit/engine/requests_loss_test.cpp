// SPDX-License-Identifier: BSD-3-Clause
// Requests whose requester or target goes away: all that are left end, and responders hear the end of what they began.
#include "requests.hpp"

namespace offpath::testing {
namespace {

class RequestLoss : public Requests {
 protected:
  RequestLoss() : Requests(2, 41) {}
};

TEST_F(RequestLoss, OfTheTargetEndsWhatIsUnderWay) {
  for (const bool process : {true, false}) {
    Bytes here(500, 1), there(500, 2);
    const Ask put{Ask::put, 0, address_of(there.data()), 500};
    // Ranks 1 and 3 live on node 1. The later ones are never answered.
    const uint32_t target = process ? 1 : 3;
    std::vector<std::pair<uint32_t, uint64_t>> posted;
    for (const uint32_t rank : {0U, 2U}) {
      posted.emplace_back(rank, ask(rank, target, {Ask::later, Ask::echo}));
      posted.emplace_back(
          rank, ask(rank, target, {Ask::later, Ask::put, address_of(there.data()), 500}, address_of(here.data())));
    }
    cluster.settle();
    for (const auto& [rank, context] : posted) EXPECT_FALSE(cluster.outcome(rank, context).has_value());
    if (process) cluster.kill_client(target);
    if (!process) cluster.cut_node(1);
    posted.emplace_back(0, ask(0, target, put, address_of(here.data())));
    cluster.settle();
    posted.emplace_back(2, ask(2, target, put, address_of(here.data())));
    posted.emplace_back(2, ask(2, target, {}));
    cluster.settle();
    for (const auto& [rank, context] : posted) EXPECT_EQ(cluster.outcome(rank, context), OFFPATH_ERR_PEER_LOST);
    EXPECT_EQ(there, Bytes(500, 2));
    EXPECT_TRUE(cluster.lost_members(0).contains({1001, target}));
  }
}

TEST_F(RequestLoss, OfATargetThatNobodyKnewIsFoundByAsking) {
  cluster.kill_client(1);
  cluster.kill_client(2);
  cluster.settle();
  Bytes here(100);
  const uint64_t remote = ask(0, 1, {}), neighbour = ask(0, 2, {});
  const uint64_t data = ask(3, 1, {Ask::get, 0, 0, 100}, address_of(here.data()));
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, remote), OFFPATH_ERR_PEER_LOST);
  EXPECT_EQ(cluster.outcome(0, neighbour), OFFPATH_ERR_PEER_LOST);
  EXPECT_EQ(cluster.outcome(3, data), OFFPATH_ERR_PEER_LOST);
}

// The same for a collective: its pulls used to wait in the dead member's service.
TEST_F(RequestLoss, OfAMemberThatNeverPostedIsFoundByPulling) {
  cluster.kill_client(1);
  Bytes here(100);
  graph::Graph graph;
  graph.pull(1, 0, graph::client_place(address_of(here.data())), 100);
  cluster.engine_of(0).post(team[0], 0, std::move(graph), 0);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_ERR_PEER_LOST);
}

TEST_F(RequestLoss, OfTheRequesterEndsWhatItHasAsked) {
  for (const uint32_t target : {0U, 1U}) {  // neighbour and remote of rank 2 and of node 0
    Bytes here(500, 1), there(500, 2);
    ask(2, target, {Ask::later, Ask::echo});
    ask(2, target, {Ask::later, Ask::put, address_of(there.data()), 500}, address_of(here.data()));
  }
  cluster.settle();
  EXPECT_EQ(at(0).put_off.size() + at(1).put_off.size(), 4U);
  at(1).answer_one(cluster.engine_of(1), 1);  // a graph of which the requester knows nothing yet
  cluster.kill_client(2);
  cluster.settle();
  for (const uint32_t target : {0U, 1U}) {
    EXPECT_TRUE(at(target).put_off.empty() && at(target).open.empty());
    EXPECT_EQ(at(target).answered,
              (std::vector<std::pair<engine::ClientId, offpath_status_t>>(2, {target + 1, OFFPATH_ERR_PEER_LOST})));
    EXPECT_TRUE(cluster.lost_members(target).contains({1001, 2}));
  }
}

// It may hold a lock that it was granted: nothing is outstanding, and yet its death matters.
TEST_F(RequestLoss, OfARequesterIsToldWhenNothingIsOutstandingToo) {
  ask(2, 0, {}), ask(2, 1, {});
  cluster.settle();
  cluster.kill_client(2);
  cluster.settle();
  EXPECT_TRUE(cluster.lost_members(0).contains({1001, 2}));
  EXPECT_TRUE(cluster.lost_members(1).contains({1001, 2}));
}

TEST_F(RequestLoss, AtAnyMomentNobodyHangs) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::map<uint32_t, Obedient> responder;
    Cluster c(3, 6, seed);
    for (uint32_t i = 0; i < c.engines(); ++i) c.engine_at(i).set_responder(&responder[i]);
    const auto t = c.make_team({0, 1, 2, 3, 4, 5}, 1);
    Bytes here(400), there(400);
    struct Posted {
      uint32_t rank, target;
      uint64_t context;
    };
    std::vector<Posted> posted;
    for (uint64_t i = 0; i < 40; ++i) {
      graph::Request request;
      request.target = static_cast<uint32_t>(random() % 6);
      const Ask::Kind kinds[] = {Ask::echo, Ask::put, Ask::get, Ask::later};
      const Ask::Kind kind = kinds[random() % 4];
      const Ask what{kind, Ask::put, address_of(there.data()), kind == Ask::echo ? 40U : 150U, i};
      request.body = body_of(what);
      request.reply = graph::client_place(address_of(here.data()));
      if (kind == Ask::echo) request.reply_bytes = 40;
      if (kind == Ask::get) request.graph.pull(request.target, 1, request.reply, 150);
      if (kind == Ask::put || kind == Ask::later) request.graph.offer(request.target, 0, request.reply, 150);
      posted.push_back({static_cast<uint32_t>(random() % 6), request.target, i});
      c.engine_of(posted.back().rank).post_request(t[posted.back().rank], std::move(request), i);
      for (uint64_t steps = random() % 4; steps > 0; --steps) c.step();
    }
    for (uint64_t i = 0; i < seed; ++i) c.step();
    const bool cut = seed % 2 == 0;
    if (cut) c.cut_node(2);
    if (!cut) c.kill_client(5);
    const auto survives = [&](uint32_t rank) { return cut ? c.node_index(rank) != 2 : rank != 5; };
    for (bool any = true; any;) {
      c.settle();
      any = false;
      for (uint32_t i = 0; i < c.engines(); ++i) {
        if (c.is_cut(i)) continue;
        std::erase_if(responder[i].put_off, [&](const auto& s) { return !survives(s.client - 1); });
        if (responder[i].put_off.empty()) continue;
        responder[i].answer_one(c.engine_at(i));
        any = true;
      }
    }
    for (const auto& [rank, target, context] : posted) {
      if (!survives(rank)) continue;
      const auto outcome = c.outcome(rank, context);
      ASSERT_TRUE(outcome.has_value()) << rank << " asks " << target << " (" << context << ")";
      EXPECT_TRUE(outcome == OFFPATH_OK || (outcome == OFFPATH_ERR_PEER_LOST && !survives(target)));
    }
    for (uint32_t node = 0; node < (cut ? 2U : 3U); ++node) {
      for (const auto& seen : responder[node].seen) {
        EXPECT_TRUE(!survives(seen.client - 1) || !responder[node].open.contains(seen.id)) << "never heard the end";
      }
    }
  }
}

TEST_F(RequestLoss, AfterwardsNoMemoryIsTouched) {
  Bytes here(2000, 1), there(2000, 2);
  const uint64_t get = ask(0, 1, {Ask::get, 0, address_of(there.data()), 2000}, address_of(here.data()));
  ask(1, 0, {Ask::put, 0, address_of(here.data()), 2000}, address_of(there.data()));
  while (at(0).seen.empty() || at(1).seen.empty()) cluster.step();
  for (int i = 0; i < 30; ++i) cluster.step();
  cluster.cut_node(1);
  while (!cluster.outcome(0, get) || at(0).answered.empty()) cluster.step();
  const Bytes before = here;
  cluster.settle();
  EXPECT_EQ(here, before);
}

}  // namespace
}  // namespace offpath::testing
