// SPDX-License-Identifier: BSD-3-Clause
// Requests, answers and their pulls from somebody who says whatever it likes; and what members say of the dead.
#include "hostile.hpp"

#include <algorithm>

namespace offpath::testing {
namespace {

using wire::Channel;

class HostileRequests : public Hostile, public graph::Responder {
 protected:
  HostileRequests() { honest->set_responder(this); }
  graph::Answer on_request(engine::ClientId client, uint64_t, uint32_t from, graph::RequestId id,
                           const std::shared_ptr<memory::Port>& memory, fabric::Bytes body) override {
    EXPECT_EQ(client, kClient);
    EXPECT_EQ(memory, client_port);
    EXPECT_LT(from, 2U);
    bodies.emplace_back(body.begin(), body.end());
    graph::Answer answer;
    answer.kind = next;
    if (next == graph::Answer::Kind::reply) answer.payload = {1, 2, 3};
    if (next == graph::Answer::Kind::later) later.push_back(id);
    if (next == graph::Answer::Kind::graph) answer.graph = graph();
    return answer;
  }
  void on_answered(engine::ClientId, uint64_t, graph::RequestId, const base::Status&) override { ++ended; }
  static graph::Graph graph_of(uint64_t from, uint64_t to) {
    graph::Graph graph;
    graph.offer(1, 0, graph::client_place(from), kBlock);
    graph.pull(1, 0, graph::client_place(to), kBlock);
    return graph;
  }
  graph::Graph graph() const { return graph_of(address_of(source.data()), address_of(target.data())); }
  // Of the honest client, to us.
  void ask(uint64_t context, bool with_graph) {
    graph::Request request;
    request.target = 1;
    request.body = {7};
    request.reply = graph::client_place(address_of(target.data()));
    request.reply_bytes = 10;
    if (with_graph) request.graph = graph();
    honest->post_request(team, std::move(request), context);
    settle();
  }
  // Of the honest client `from` is we: requests go from 1 to 0, answers to its own ones are about 0 to 1.
  Message request(uint64_t number) { return about(Kind::request, number, 1, 0, Channel::calls); }
  Message reply(uint64_t number, int32_t status = OFFPATH_OK) {
    Message m = about(Kind::reply, number, 0, 1, Channel::calls);
    m.status = status;
    return m;
  }
  size_t heard_of(Kind kind) const {
    return static_cast<size_t>(
        std::count_if(heard.begin(), heard.end(), [&](const Message& m) { return m.kind == kind; }));
  }
  graph::Answer::Kind next = graph::Answer::Kind::reply;
  std::vector<std::vector<uint8_t>> bodies;
  std::vector<graph::RequestId> later;
  int ended = 0;
};

TEST_F(HostileRequests, AreHandedOverOnceAndInOrder) {
  const uint64_t before = honest->refused_count();
  say(request(2), 12), say(request(1), 11), say(request(2), 12);
  settle();
  EXPECT_TRUE(bodies.empty()) << "the first has not come";
  say(request(0), 10);
  settle();
  say(request(0), 10), say(request(1), 11), say(request(2), 12);
  expect_untouched();
  ASSERT_EQ(bodies.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(bodies[i], std::vector<uint8_t>(10 + i, 0xBB));
  EXPECT_EQ(heard_of(Kind::reply), 3U);
  EXPECT_EQ(honest->refused_count() - before, 4U);
}

TEST_F(HostileRequests, WhatNobodyCanHavePostedIsRefused) {
  const uint64_t before = honest->refused_count();
  say(about(Kind::request, 0, 1, 0), 5);                    // in the channel of collectives
  say(about(Kind::request, 0, 1, 0, Channel::answers), 5);  // of answers
  say(about(Kind::request, 0, 2, 0, Channel::calls), 5);    // nobody
  say(about(Kind::request, 0, UINT32_MAX, 0, Channel::calls), 5);
  say(request(1 << 20), 5);  // far ahead
  say(request(UINT64_MAX), 5);
  settle();
  EXPECT_EQ(honest->refused_count() - before, 6U);
  say(about(Kind::request, 0, 1, 5, Channel::calls), 5);  // a member we do not serve: kept, as for a team that may come
  Message unknown = request(0);
  unknown.team.bytes[5] = 99;
  say(unknown, 5);
  expect_untouched();
  EXPECT_TRUE(bodies.empty());
  say(request(0), 5);
  settle();
  EXPECT_EQ(bodies.size(), 1U) << "the honest one still counts";
}

TEST_F(HostileRequests, ThoseThatWaitAreBounded) {
  for (uint64_t number = 1; number < 6000; ++number) say(request(number), 40);
  settle();
  EXPECT_EQ(honest->refused_count(), 5999U - 4095U);
  say(request(0), 40);
  settle();
  EXPECT_EQ(bodies.size(), 4096U);
  for (uint32_t i = 0; i < 3000; ++i) {  // for teams that never come
    Message m = request(0);
    m.team.bytes[1] = static_cast<uint8_t>(i), m.team.bytes[2] = static_cast<uint8_t>(i >> 8), m.team.bytes[3] = 1;
    say(m, 60);
  }
  const uint64_t before = honest->refused_count();
  settle();
  EXPECT_EQ(honest->refused_count() - before, 2900U) << "parked_limit is 100";
}

TEST_F(HostileRequests, AnswersThatAreNoneAreIgnored) {
  ask(1, false), ask(2, true);
  const std::vector<uint8_t> before = target;
  client_memory->writes = 0;
  say(reply(2), 10), say(reply(1 << 20), 10), say(about(Kind::reply, 0, 1, 0, Channel::calls), 10);
  say(about(Kind::reply, 0, 0, 0, Channel::calls), 10), say(about(Kind::reply, 0, 0, 77, Channel::calls), 10);
  say(about(Kind::reply, 0, 77, 1, Channel::calls), 10);
  expect_untouched();
  EXPECT_TRUE(outcome.empty());
  say(reply(0), 11), say(reply(1), 9);
  settle();
  say(reply(0), 10), say(reply(1), 10);
  expect_untouched();
  EXPECT_EQ(outcome, (std::map<uint64_t, offpath_status_t>{{1, OFFPATH_ERR_TRUNCATED}, {2, OFFPATH_ERR_TRUNCATED}}));
  EXPECT_EQ(client_memory->writes, 0);
  EXPECT_EQ(target, before);
}

TEST_F(HostileRequests, AnswersToWhatIsNotSentYetAreIgnored) {
  const uint64_t limit = 4096;
  for (uint64_t i = 0; i < limit + 100; ++i) ask(i, false);
  EXPECT_EQ(heard_of(Kind::request), limit);
  for (uint64_t number = limit; number < limit + 100; ++number) say(reply(number), 10);
  settle();
  EXPECT_TRUE(outcome.empty());
  for (uint64_t number = 0; number < 60; ++number) say(reply(number), 10);
  settle();
  EXPECT_EQ(outcome.size(), 60U);
  EXPECT_EQ(heard_of(Kind::request), limit + 60);
  for (uint64_t number = 60; number < limit; ++number) say(reply(number), 10);
  settle();
  for (uint64_t number = limit; number < limit + 100; ++number) say(reply(number), 10);
  settle();
  EXPECT_EQ(outcome.size(), limit + 100);
}

TEST_F(HostileRequests, AFailedAnswerEndsTheGraphForGood) {
  ask(1, true);
  const Message pull = pull_for(0, Channel::answers);
  say(reply(0, OFFPATH_ERR_RANGE), 10);
  settle();
  EXPECT_EQ(outcome[1], OFFPATH_ERR_RANGE);
  client_memory->writes = 0;
  Message chunk;
  chunk.kind = Kind::data;
  chunk.pull_id = pull.pull_id;
  chunk.bytes = kBlock;
  say(chunk, 64), say(reply(0), 10), say(about(Kind::done, 0, 0, 1, Channel::calls));
  say(about(Kind::pull, 0, 0, 1, Channel::calls));
  expect_untouched();
  EXPECT_EQ(client_memory->writes, 0);
  EXPECT_EQ(heard_of(Kind::fail), 1U) << "a pull for what has ended is refused";
  EXPECT_EQ(heard_of(Kind::data), 0U);
}

TEST_F(HostileRequests, PullsAreParkedOnlyWhileAnAnswerMayCome) {
  for (uint64_t number = 0; number < 300; ++number) {
    Message early = about(Kind::pull, number, 0, 1, Channel::answers);
    early.pull_id = number;
    say(early);
  }
  settle();
  EXPECT_EQ(heard_of(Kind::fail), 200U) << "parked_limit is 100";
  say(about(Kind::pull, 5, 0, 1, Channel::calls));  // of a request that was never posted
  say(about(Kind::pull, 5, 0, 9, Channel::answers));
  settle();
  EXPECT_EQ(heard_of(Kind::fail), 201U);
  for (uint64_t number = 0; number < 100; ++number) say(request(number), 4);
  settle();
  EXPECT_EQ(heard_of(Kind::fail), 301U) << "all were answered without data";
  say(about(Kind::pull, 7, 0, 1, Channel::answers));
  settle();
  EXPECT_EQ(heard_of(Kind::fail), 302U);
  next = graph::Answer::Kind::later;
  say(request(100), 4);
  settle();
  say(about(Kind::pull, 100, 0, 1, Channel::answers));
  settle();
  EXPECT_EQ(heard_of(Kind::fail), 302U) << "it was put off";
  honest->answer(later.at(0), {});
  honest->answer(later.at(0), {});  // for the second time
  honest->answer(12345678, {});
  settle();
  EXPECT_EQ(heard_of(Kind::fail), 303U);
  EXPECT_EQ(heard_of(Kind::reply), 101U);
}

TEST_F(HostileRequests, MutatedMessagesNeverEscape) {
  std::mt19937_64 random(19);
  for (uint64_t round = 0; round < 60; ++round) {
    ask(2 * round, true), ask(2 * round + 1, false);
    const graph::Answer::Kind kinds[] = {graph::Answer::Kind::reply, graph::Answer::Kind::graph,
                                         graph::Answer::Kind::later};
    next = kinds[random() % 3];
    for (int i = 0; i < 60; ++i) {
      const Channel channels[] = {Channel::collectives, Channel::calls, Channel::answers, Channel::answers};
      Message m = about(static_cast<Kind>(1 + random() % 9), random() % (2 * round + 3), 0, 1, channels[random() % 4]);
      if (random() % 2 == 0) std::swap(m.from, m.to);
      if (random() % 2 == 0 && !heard.empty()) m.pull_id = heard[random() % heard.size()].pull_id;
      if (m.kind == Kind::lost) m.kind = Kind::request;
      m.status = random() % 3 == 0 ? -static_cast<int32_t>(random() % 13) : 0;
      if (random() % 8 == 0) m.from = static_cast<uint32_t>(random());
      if (random() % 8 == 0) m.to = static_cast<uint32_t>(random());
      if (random() % 2 == 0) m.bytes = random() % 400;
      m.offset = m.bytes > 0 ? random() % m.bytes : 0;
      uint8_t bytes[wire::kMaxMessageBytes];
      const size_t length = wire::encode(m, bytes);
      if (random() % 4 == 0) bytes[random() % length] ^= static_cast<uint8_t>(1 << random() % 8);
      send(fabric::Bytes(bytes, length), fabric::Bytes(payload).first(random() % 64));
    }
    for (const graph::RequestId id : std::exchange(later, {})) {
      graph::Answer answer;
      answer.kind = kinds[random() % 3];
      if (answer.kind == graph::Answer::Kind::graph) answer.graph = graph();
      honest->answer(id, std::move(answer));
    }
    expect_untouched();
  }
}

TEST_F(HostileRequests, RandomBodiesArriveAsTheyAre) {
  std::mt19937_64 random(3);
  std::vector<std::vector<uint8_t>> sent;
  for (uint64_t number = 0; number < 500; ++number) {
    for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random());
    const size_t bytes = random() % 65;
    sent.emplace_back(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(bytes));
    say(request(number), bytes);
  }
  settle();
  EXPECT_EQ(bodies, sent);
}

// ---- what is said of the dead ---------------------------------------------------------------------------------

class Obituary : public Hostile {
 protected:
  // Members 1 and 2 live at the raw endpoint.
  void SetUp() override {
    spec.id.bytes[0] = 7;
    spec.client = kClient;
    spec.members = {{true, 0, {}}, {false, 0, raw->address()}, {false, 0, raw->address()}};
    team = honest->add_team(spec).value();
  }
  engine::TeamSpec spec;
  void post_pulls(std::initializer_list<uint32_t> peers) {
    graph::Graph graph;
    for (const uint32_t peer : peers) graph.pull(peer, 0, graph::client_place(address_of(target.data())), kBlock);
    honest->post(team, 0, std::move(graph), 0);
    settle();
  }
  Message lost_member(uint64_t sequence) {
    Message m = about(Kind::lost, sequence, 2, 0);
    m.team.bytes[0] = 7;
    m.status = OFFPATH_ERR_PEER_LOST;
    return m;
  }
};

TEST_F(Obituary, OfAProcessIsPassedOnAsWhatItIs) {
  post_pulls({1, 2});
  say(lost_member(wire::kNoOperation));
  settle();
  EXPECT_EQ(outcome[0], OFFPATH_ERR_PEER_LOST);
  const auto told = std::find_if(heard.begin(), heard.end(), [](const Message& m) { return m.kind == Kind::lost; });
  ASSERT_NE(told, heard.end()) << "member 1 still waits for us";
  EXPECT_EQ(told->to, 1U);
  EXPECT_EQ(told->from, 2U);
  EXPECT_EQ(told->status, OFFPATH_ERR_PEER_LOST);
}

// Member 1 gave the operation up because of member 2, with which we have nothing to do in it.
TEST_F(Obituary, EndsTheOperationThatAnotherGaveUp) {
  post_pulls({1});
  say(lost_member(0));
  settle();
  EXPECT_EQ(outcome[0], OFFPATH_ERR_PEER_LOST);
}

// Else it would end well, with garbage.
TEST_F(Obituary, WhoAsksForABlockThatWasGivenUpIsNotToldThatThereIsNone) {
  for (const bool has_left : {false, true}) {
    graph::Graph graph;
    const uint32_t from_the_dead = graph.pull(2, 0, graph::client_place(address_of(target.data())), kBlock);
    graph.offer(1, 0, graph::client_place(address_of(target.data())), kBlock, from_the_dead);
    if (has_left) ++spec.id.bytes[0], team = honest->add_team(spec).value();
    honest->post(team, 0, std::move(graph), has_left ? 1 : 0);
    if (has_left) honest->remove_team(team);
    settle();
    Message obituary = lost_member(wire::kNoOperation), pull = about(Kind::pull, 0, 0, 1);
    obituary.team = pull.team = spec.id;
    say(obituary);
    settle();
    EXPECT_EQ(outcome[has_left ? 1 : 0], OFFPATH_ERR_PEER_LOST);
    heard.clear();
    say(pull);
    settle();
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0].kind, Kind::fail);
  }
}

TEST_F(Obituary, LeavesAloneWhatNeedsTheLivingOnly) {
  post_pulls({1});
  say(lost_member(wire::kNoOperation));
  settle();
  EXPECT_TRUE(outcome.empty());
  EXPECT_EQ(lost, std::set<uint32_t>{2});
}

}  // namespace
}  // namespace offpath::testing
