// SPDX-License-Identifier: BSD-3-Clause
// Requests between members of all places: their answers, their data, their order.
#include "exchange.hpp"
#include "requests.hpp"

namespace offpath::testing {
namespace {

// One node: all members are neighbours. Four: none is. A member always asks itself through its own worker.
class EachPlacement : public Requests, public ::testing::WithParamInterface<uint32_t> {
 protected:
  EachPlacement() : Requests(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Nodes, EachPlacement, ::testing::Values(1, 2, 4));

TEST_P(EachPlacement, EveryMemberAnswersEveryMember) {
  Bytes replies(16 * 8);
  std::vector<uint64_t> posted;
  for (uint32_t i = 0; i < 16; ++i) {
    posted.push_back(ask(i / 4, i % 4, {.bytes = 8, .serial = i}, address_of(replies.data() + size_t{i} * 8)));
  }
  cluster.settle();
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(cluster.outcome(i / 4, posted[i]), OFFPATH_OK);
    EXPECT_EQ(cluster.told(i / 4, posted[i]).steps, 0U) << "the observer learns of the end only";
    for (size_t byte = 0; byte < 8; ++byte) EXPECT_EQ(replies[size_t{i} * 8 + byte], echo_byte(i));
  }
}

TEST_P(EachPlacement, DataGoesInBothDirections) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{64}, uint64_t{65}, uint64_t{1000}}) {
    for (uint32_t i = 0; i < 16; ++i) {
      SCOPED_TRACE(std::to_string(bytes) + " bytes, " + std::to_string(i / 4) + " asks " + std::to_string(i % 4));
      const uint32_t rank = i / 4, target = i % 4;
      Bytes put(bytes, 1), put_to(bytes), get(bytes), get_from(bytes, 2), swap(2 * bytes, 3), swapped(bytes, 4);
      const uint64_t a = ask(rank, target, {Ask::put, 0, address_of(put_to.data()), bytes}, address_of(put.data()));
      const uint64_t b = ask(rank, target, {Ask::get, 0, address_of(get_from.data()), bytes}, address_of(get.data()));
      const uint64_t c = ask(rank, target, {Ask::swap, 0, address_of(swapped.data()), bytes}, address_of(swap.data()));
      cluster.settle();
      for (const uint64_t posted : {a, b, c}) {
        EXPECT_EQ(cluster.outcome(rank, posted), OFFPATH_OK);
        EXPECT_EQ(cluster.told(rank, posted).steps + cluster.told(rank, posted).served, 0U);
      }
      EXPECT_EQ(put_to, Bytes(bytes, 1));
      EXPECT_EQ(get, Bytes(bytes, 2));
      EXPECT_EQ(swapped, Bytes(bytes, 3));
      EXPECT_EQ(Bytes(swap.begin() + static_cast<std::ptrdiff_t>(bytes), swap.end()), Bytes(bytes, 4));
      EXPECT_TRUE(at(target).open.empty());
    }
  }
}

TEST_P(EachPlacement, TheyReachTheResponderInTheOrderOfPosting) {
  Bytes place(100), reply(8);
  for (uint64_t serial = 0; serial < 150; ++serial) {
    for (uint32_t i = 0; i < 16; ++i) {
      const Ask::Kind kinds[] = {Ask::echo, Ask::refuse, Ask::put, Ask::later};
      ask(i / 4, i % 4, {kinds[cluster.random()() % 4], Ask::echo, address_of(place.data()), 8, serial},
          address_of(reply.data()));
    }
    for (uint64_t steps = cluster.random()() % 20; steps > 0; --steps) cluster.step();
  }
  finish();
  std::map<std::pair<engine::ClientId, uint32_t>, uint64_t> next;
  for (const auto& [node, responder] : responders) {
    for (const auto& seen : responder.seen) EXPECT_EQ(seen.ask.serial, (next[{seen.client, seen.from}]++));
  }
  EXPECT_EQ(next.size(), 16U);
  for (const auto& [pair, count] : next) EXPECT_EQ(count, 150U);
}

TEST_P(EachPlacement, AnswersMayComeLaterAndInAnyOrder) {
  std::vector<Bytes> here(16, Bytes(400, 5)), there(16, Bytes(200, 6));
  std::vector<uint64_t> posted;
  const uint32_t answers[] = {Ask::echo, Ask::put, Ask::get, Ask::swap};
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t then = answers[(i / 4 + i) % 4];
    posted.push_back(ask(i / 4, i % 4, {Ask::later, then, address_of(there[i].data()), then == Ask::echo ? 50U : 200U},
                         address_of(here[i].data())));
  }
  cluster.settle();
  for (uint32_t i = 0; i < 16; ++i) EXPECT_FALSE(cluster.outcome(i / 4, posted[i]).has_value());
  EXPECT_EQ(here, std::vector<Bytes>(16, Bytes(400, 5)));
  finish();
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(cluster.outcome(i / 4, posted[i]), OFFPATH_OK);
}

TEST_P(EachPlacement, ARefusalEndsTheRequestAndItsPulls) {
  for (int round = 0; round < 40; ++round) {
    for (const Ask::Kind kind : {Ask::refuse, Ask::later}) {
      Bytes here(300, 5);
      std::vector<uint64_t> posted;
      for (uint32_t target = 0; target < 4; ++target) {
        graph::Request request;
        request.target = target;
        request.body = body_of({kind, Ask::refuse});
        request.graph.pull(target, 1, graph::client_place(address_of(here.data())), 300);
        request.graph.offer(target, 0, graph::client_place(address_of(here.data())), 300);
        posted.push_back(post(0, std::move(request)));
      }
      finish();
      for (const uint64_t one : posted) EXPECT_EQ(cluster.outcome(0, one), OFFPATH_ERR_RANGE);
      EXPECT_EQ(here, Bytes(300, 5));
    }
  }
}

TEST_P(EachPlacement, AnAnswerOfAnotherLengthIsAFailure) {
  for (uint32_t target = 0; target < 4; ++target) {
    Bytes reply(60, 9);
    const uint64_t shorter = ask(0, target, {.bytes = 20}, address_of(reply.data()), 21);
    const uint64_t longer = ask(0, target, {.bytes = 22}, address_of(reply.data()), 21);
    const uint64_t exact = ask(0, target, {.bytes = 0});
    cluster.settle();
    EXPECT_EQ(cluster.outcome(0, shorter), OFFPATH_ERR_TRUNCATED);
    EXPECT_EQ(cluster.outcome(0, longer), OFFPATH_ERR_TRUNCATED);
    EXPECT_EQ(cluster.outcome(0, exact), OFFPATH_OK);
    EXPECT_EQ(reply, Bytes(60, 9));
  }
}

TEST_P(EachPlacement, GraphsThatDoNotMatchEndAllTheSame) {
  Bytes here(200, 5), there(200, 6);
  for (uint32_t target = 0; target < 4; ++target) {
    graph::Request unasked, unanswered;
    unasked.target = unanswered.target = target;
    unasked.body = unanswered.body = body_of({});
    unasked.graph.offer(target, 0, graph::client_place(address_of(here.data())), 200);
    unanswered.graph.pull(target, 1, graph::client_place(address_of(here.data())), 200);
    const uint64_t a = post(1, std::move(unasked)), b = post(1, std::move(unanswered));
    graph::Request bare;  // the target wants data and there is none
    bare.target = target;
    bare.body = body_of({Ask::put, 0, address_of(there.data()), 200});
    const uint64_t c = post(1, std::move(bare));
    cluster.settle();
    EXPECT_EQ(cluster.outcome(1, a), OFFPATH_OK) << "the target did not want it";
    EXPECT_EQ(cluster.outcome(1, b), OFFPATH_ERR_STATE);
    EXPECT_EQ(cluster.outcome(1, c), OFFPATH_ERR_STATE);
    EXPECT_EQ(here, Bytes(200, 5));
    EXPECT_EQ(there, Bytes(200, 6));
  }
}

TEST_P(EachPlacement, AnswersAreLaidOut) {
  Bytes here(64, 9);
  graph::Request request;
  request.target = 1;
  request.body = body_of({.bytes = 8, .serial = 3});
  request.reply_bytes = 8;
  request.graph.layouts.push_back({4, 16, {{0, 2}, {6, 2}}});
  request.reply = {address_of(here.data()), 0, 0};
  const uint64_t posted = post(0, std::move(request));
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, posted), OFFPATH_OK);
  for (size_t i = 0; i < 64; ++i) {
    const bool inside = i < 32 && (i % 16 < 2 || (i % 16 >= 6 && i % 16 < 8));
    EXPECT_EQ(here[i], inside ? echo_byte(3) : 9) << i;
  }
}

TEST_P(EachPlacement, AFaultOnEitherSideFailsTheRequest) {
  Bytes good(200, 1), torn(200, 2);
  memory->tear(torn.data() + 100, 1);
  for (uint32_t target = 0; target < 4; ++target) {
    const uint64_t far = address_of(target % 2 ? good.data() : torn.data());
    const uint64_t near = address_of(target % 2 ? torn.data() : good.data());
    const uint64_t a = ask(0, target, {Ask::put, 0, far, 200}, near);
    const uint64_t b = ask(0, target, {Ask::get, 0, far, 200}, near);
    const uint64_t c = ask(0, target, {.bytes = 20}, address_of(torn.data() + 90));
    cluster.settle();
    for (const uint64_t posted : {a, b, c}) EXPECT_EQ(cluster.outcome(0, posted), OFFPATH_ERR_MEMORY_FAULT);
    EXPECT_TRUE(at(target).open.empty());
  }
}

TEST_P(EachPlacement, CollectivesAndRequestsDoNotDisturbEachOther) {
  for (uint64_t sequence = 0; sequence < 20; ++sequence) {
    std::vector<Bytes> send(4, Bytes(4 * 150, 3)), recv(4, Bytes(4 * 150)), here(16, Bytes(150, 4)), there = here;
    std::vector<uint64_t> posted;
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t rank = i / 4;
      if (i % 4 == 2) {
        cluster.engine_of(rank).post(
            team[rank], sequence,
            alltoall_graph(rank, 4, address_of(send[rank].data()), address_of(recv[rank].data()), 150), sequence);
      }
      const Ask what{i % 2 ? Ask::put : Ask::get, 0, address_of(there[i].data()), 150};
      posted.push_back(ask(rank, i % 4, what, address_of(here[i].data())));
    }
    cluster.settle();
    for (uint32_t i = 0; i < 16; ++i) {
      EXPECT_EQ(cluster.outcome(i / 4, posted[i]), OFFPATH_OK);
      EXPECT_EQ(cluster.outcome(i / 4, sequence), OFFPATH_OK);
    }
    EXPECT_EQ(recv, send);
  }
}

TEST_F(Requests, WrongOnesAreRefusedAtOnce) {
  Bytes reply(5000);
  EXPECT_EQ(cluster.outcome(0, ask(0, 4, {})), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(cluster.outcome(0, ask(0, UINT32_MAX, {})), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(cluster.outcome(0, ask(0, 1, {.bytes = 65}, address_of(reply.data()))), OFFPATH_ERR_ARGUMENT);
  graph::Request request;
  request.target = 1;
  request.body.resize(65);
  EXPECT_EQ(cluster.outcome(0, post(0, std::move(request))), OFFPATH_ERR_ARGUMENT);
  const uint64_t good = ask(0, 1, {.bytes = 64}, address_of(reply.data()));
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, good), OFFPATH_OK) << "a refused one must not leave a gap";
}

TEST_F(Requests, WithoutAResponderAllAreRefused) {
  for (uint32_t i = 0; i < cluster.engines(); ++i) cluster.engine_at(i).set_responder(nullptr);
  const uint64_t remote = ask(0, 1, {}), neighbour = ask(0, 2, {}), own = ask(0, 0, {});
  cluster.settle();
  for (const uint64_t posted : {remote, neighbour, own}) EXPECT_EQ(cluster.outcome(0, posted), OFFPATH_ERR_RANGE);
}

TEST_F(Requests, AnEmptyBodyIsARequestToo) {
  for (uint32_t target = 0; target < 4; ++target) {
    graph::Request request;
    request.target = target;
    const uint64_t posted = post(0, std::move(request));
    cluster.settle();
    EXPECT_EQ(cluster.outcome(0, posted), OFFPATH_ERR_RANGE);
    EXPECT_EQ(at(target).seen.back().from, 0U);
  }
}

TEST_F(Requests, AMemberThatLeftTheTeamRefuses) {
  cluster.engine_of(1).remove_team(team[1]);
  cluster.engine_of(2).remove_team(team[2]);
  Bytes here(100);
  const uint64_t remote = ask(0, 1, {Ask::get, 0, 0, 100}, address_of(here.data()));
  const uint64_t neighbour = ask(0, 2, {});
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, remote), OFFPATH_ERR_RANGE);
  EXPECT_EQ(cluster.outcome(0, neighbour), OFFPATH_ERR_RANGE);
  EXPECT_TRUE(cluster.lost_members(0).empty());
}

// Posted by a member that leaves the team: they end, and are answered, as if it had stayed.
TEST_F(Requests, LeavingTheTeamDoesNotEndThem) {
  Bytes here(100, 3), there(100), reply(8);
  const uint64_t put = ask(0, 1, {Ask::put, 0, address_of(there.data()), 100}, address_of(here.data()));
  const uint64_t echo = ask(0, 1, {.bytes = 8}, address_of(reply.data()));
  const uint64_t later = ask(2, 1, {Ask::later, Ask::echo});
  cluster.engine_of(0).remove_team(team[0]);
  cluster.engine_of(2).remove_team(team[2]);
  finish();
  EXPECT_EQ(cluster.outcome(0, put), OFFPATH_OK);
  EXPECT_EQ(cluster.outcome(0, echo), OFFPATH_OK);
  EXPECT_EQ(cluster.outcome(2, later), OFFPATH_OK);
  EXPECT_EQ(there, here);
}

TEST_F(Requests, ARequestBeforeTheTeamIsKept) {
  const std::vector<uint32_t> members{0, 1};
  team[0] = cluster.join_team(members, 9, 0);
  Bytes reply(8);
  const uint64_t posted = ask(0, 1, {.bytes = 8, .serial = 4}, address_of(reply.data()));
  cluster.settle();
  EXPECT_FALSE(cluster.outcome(0, posted).has_value());
  cluster.join_team(members, 9, 1);
  cluster.settle();
  EXPECT_EQ(cluster.outcome(0, posted), OFFPATH_OK);
  EXPECT_EQ(reply, Bytes(8, echo_byte(4)));
}

}  // namespace
}  // namespace offpath::testing
