// SPDX-License-Identifier: BSD-3-Clause
// The runner alone: no fabric, no memory, and rooms that only write down what they are told.
#include "engine/runner/runner.hpp"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

using engine::Operation;
using engine::Step;
using graph::Graph;
using Words = std::vector<std::string>;

struct Nobody : engine::Observer, engine::Doer {
  void on_step(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_served(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_finished(engine::ClientId, uint64_t, base::Status) override {}
  void on_member_lost(engine::ClientId, uint64_t, uint32_t, engine::Loss) override {}
  std::shared_ptr<memory::Port> scratch(uint64_t) override { return nullptr; }
  void combine(const kernels::Reduction&, const uint8_t*, const uint8_t*, uint8_t*, size_t) override {}
};

class RunnerTest : public ::testing::Test, protected engine::Rooms {
 protected:
  RunnerTest() {
    core.clients[1] = nullptr;
    engine::TeamSpec spec;
    spec.members = {{}, {}};
    spec.client = 1;
    team = core.add_team(std::move(spec)).value();
  }
  Operation& post(Graph graph) {
    return core.add_operation(team, {.number = next++}, engine::Part::collective, std::move(graph), next);
  }
  void note(const char* word, const Operation& operation, uint32_t step) {
    told.push_back(std::string(word) + ' ' + std::to_string(operation.key.number) + '.' + std::to_string(step));
  }
  void finish(Operation& operation, uint32_t step, const base::Status& status = {}) {
    runner.finish_step(operation, step, status, 8);
    runner.settle();
  }
  Words take() { return std::exchange(told, {}); }

  // Rooms
  void begin(Operation& operation) override { note("begin", operation, 0); }
  void begin_step(Operation& operation, uint32_t step) override {
    note(operation.steps[step].failed ? "leave out" : "do", operation, step);
  }
  void end_step(Operation& operation, uint32_t step, const base::Status&, uint64_t) override {
    note("added", operation, step);
    --operation.endings_left;
    runner.end_if_done(operation);
  }
  void offer(Operation& operation, uint32_t first) override { note("offer", operation, first); }
  void arrive(Operation& operation) override { note("arrive", operation, 0); }
  void forget(Operation& operation) override { note("forget", operation, 0); }
  void end(std::unique_ptr<Operation> operation) override {
    note(operation->status.ok() ? "end" : "fail", *operation, 0);
  }
  void go_on() override { told.push_back("go on"); }

  Nobody nobody;
  engine::Core core{nobody, nobody};
  engine::Runner runner{core, *this, [] {}};
  std::shared_ptr<engine::Team> team;
  uint64_t next = 0;
  Words told;
};

Graph chain(uint32_t steps) {
  Graph graph;
  for (uint32_t i = 0; i < steps; ++i) {
    const uint32_t step = graph.copy({}, {}, 8);
    if (i > 0) graph.order(step - 1, step);
  }
  return graph;
}

TEST_F(RunnerTest, StepsStartWhenWhatTheyWaitForIsDone) {
  Operation& operation = post(chain(2));
  runner.start(operation);
  EXPECT_EQ(take(), Words{"begin 0.0"});  // nothing runs before settle()
  runner.settle();
  EXPECT_EQ(take(), Words{"do 0.0"});
  operation.steps[0].first_waiting = 7;
  finish(operation, 0);
  EXPECT_EQ(take(), (Words{"offer 0.7", "do 0.1"}));
  finish(operation, 1);
  EXPECT_EQ(take(), (Words{"forget 0.0", "end 0.0"}));
  EXPECT_TRUE(core.operations.empty());
  EXPECT_TRUE(team->operations.empty());
}

TEST_F(RunnerTest, WhatIsOrderedAfterAFailureIsMarked) {
  Operation& operation = post(chain(3));
  runner.start(operation);
  runner.settle();
  finish(operation, 0, base::Status::error(OFFPATH_ERR_MEMORY_FAULT, "gone"));
  EXPECT_EQ(take(), (Words{"begin 0.0", "do 0.0", "leave out 0.1"}));
  finish(operation, 1);
  finish(operation, 2);
  EXPECT_EQ(take(), (Words{"leave out 0.2", "forget 0.0", "fail 0.0"}));
}

TEST_F(RunnerTest, WhatIsPutOffComesAfterStepsAndBeforeEnds) {
  Operation& over = post(chain(1));
  runner.start(over);
  runner.settle();
  Operation& other = post(chain(1));
  runner.start(other);
  take();
  runner.put_off();
  finish(over, 0);
  EXPECT_EQ(take(), (Words{"do 1.0", "go on", "forget 0.0", "end 0.0"}));
}

TEST_F(RunnerTest, AnOperationDoesNotEndWhileAPortWorksForIt) {
  Operation& operation = post(chain(1));
  runner.start(operation);
  runner.settle();
  const memory::Ticket ticket = runner.next_ticket();
  bool given_back = false;
  runner.when_done(operation, memory::Outcome::later(), ticket, [&](Operation* still, const base::Status&) {
    EXPECT_EQ(still, nullptr);
    given_back = true;
  });
  runner.end(operation, base::Status::error(OFFPATH_ERR_PEER_LOST, "lost"));
  runner.settle();
  EXPECT_EQ(take(), (Words{"begin 0.0", "do 0.0", "forget 0.0"}));
  EXPECT_FALSE(given_back);
  runner.end_access(ticket.number, {});
  EXPECT_TRUE(given_back);
  EXPECT_EQ(take(), (Words{"forget 0.0", "fail 0.0"}));
}

TEST_F(RunnerTest, OperationsInOrderWaitForEachOtherAndFailTogether) {
  for (uint32_t i = 0; i < 2; ++i) {
    Graph graph = chain(1);
    graph.in_order = true;
    runner.start(post(std::move(graph)));
  }
  runner.settle();
  EXPECT_EQ(take(), (Words{"begin 0.0", "begin 1.0", "do 0.0"}));
  finish(*team->operations.at({.number = 0}), 0, base::Status::error(OFFPATH_ERR_RANGE, "no"));
  EXPECT_EQ(take(), (Words{"forget 0.0", "fail 0.0", "leave out 1.0"}));
}

TEST_F(RunnerTest, WhoAddsAStepHearsOfItsEnd) {
  Graph graph = chain(1);
  graph.ends = graph::Ends::together;
  Operation& operation = post(std::move(graph));
  runner.start(operation);
  runner.add_step(operation, {.kind = graph::StepKind::ending, .peer = 1});
  ++operation.endings_left;
  runner.settle();
  EXPECT_EQ(take(), (Words{"begin 0.0", "do 0.0", "do 0.1"}));
  finish(operation, 0);
  EXPECT_EQ(take(), Words{"arrive 0.0"});  // a question holds up the end, and no arrival
  finish(operation, 1);
  EXPECT_EQ(take(), (Words{"added 0.1", "forget 0.0", "end 0.0"}));
}

}  // namespace
}  // namespace offpath::testing
