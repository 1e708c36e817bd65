// SPDX-License-Identifier: BSD-3-Clause
// Messages and one-sided operations of the model against what can be worked out by hand.
#include "worked_out.hpp"

#include <cmath>

namespace offpath::model {
namespace {

TEST(Model, AOneSidedOperationNeedsNoTargetOnTheDpuOnly) {
  for (const Path path : {Path::dpu, Path::host}) {
    Job job = job_of(wire_only(), 2);
    Operation get = operation_of(job, Collective::window, 1 << 20, path);
    get.remote = Remote::get;
    job.operations = {get};
    job.ranks[0] = {{Act::Kind::post, 0, {0}}, {Act::Kind::wait, 0, {0}}};
    job.ranks[1] = {{Act::Kind::compute, 50e6, {}}, {Act::Kind::test, 1, {}}, {Act::Kind::sync, 0, {}}};
    job.ranks[0].push_back({Act::Kind::sync, 0, {}});
    const auto outcome = simulate(job);
    ASSERT_TRUE(outcome.ok()) << outcome.status().text();
    const double done = outcome->act_end_ns[0][1], wire = kMiB / 0.125;
    if (path == Path::dpu) {
      EXPECT_NEAR(done, wire, 0.01 * wire);
    } else {
      EXPECT_GT(done, 50e6);
    }
  }
}

// Its payload is there when the receiver looks for it, and is copied then. Natively it does not begin before.
TEST(Model, AMessageNeedsNobodyOnTheDpuOnly) {
  for (const Path path : {Path::dpu, Path::host}) {
    Job job = job_of(wire_only(), 2);
    job.machine.copy_bytes_per_ns = 1;
    Operation message = operation_of(job, Collective::send, 1 << 20, path);
    message.remote = Remote::message;
    job.operations = {message};
    job.ranks[0] = {{Act::Kind::post, 0, {0}}, {Act::Kind::compute, 50e6, {}}, {Act::Kind::wait, 0, {0}}};
    job.ranks[1] = {{Act::Kind::compute, 20e6, {}}, {Act::Kind::post, 0, {0}}, {Act::Kind::wait, 0, {0}}};
    const auto outcome = simulate(job);
    ASSERT_TRUE(outcome.ok()) << outcome.status().text();
    const double received = outcome->act_end_ns[1][2], sent = outcome->act_end_ns[0][2];
    if (path == Path::dpu) {
      EXPECT_NEAR(received, 20e6 + kMiB, 1e4);
      EXPECT_NEAR(sent, 50e6, 1e4);
    } else {
      EXPECT_NEAR(received, 50e6 + kMiB / 0.125, 1e5);
    }
  }
}

// Of native MPI: what the sockets hold (two pieces) and what the library has queued for them (three) goes first.
TEST(Model, AShortAnswerStaysBehindPiecesOfALongOne) {
  Job job = job_of(wire_only(), 2);
  job.machine.native.window_bytes = 2 * job.machine.native.chunk_bytes;
  job.operations.assign(2, operation_of(job, Collective::window, 2 << 20, Path::host));
  for (Operation& get : job.operations) get.remote = Remote::get;
  job.operations[1].bytes = 8;
  job.ranks[0] = {{Act::Kind::post, 0, {0}}, {Act::Kind::compute, 1e6, {}}, {Act::Kind::post, 0, {1}},
                  {Act::Kind::wait, 0, {1}}, {Act::Kind::wait, 0, {0}},     {Act::Kind::sync, 0, {}}};
  job.ranks[1] = {{Act::Kind::sync, 0, {}}};
  const auto outcome = simulate(job);
  ASSERT_TRUE(outcome.ok()) << outcome.status().text();
  const double piece_ns = job.machine.native.chunk_bytes / 0.125;
  EXPECT_GT(outcome->act_end_ns[0][3], 4 * piece_ns);
  EXPECT_LT(outcome->act_end_ns[0][3], 8 * piece_ns);
  EXPECT_NEAR(outcome->act_end_ns[0][4], 16 * piece_ns, 1.5 * piece_ns);
}

// The service of the target is asked: what is on its way there comes first. Its own answer finds an idle wire.
TEST(Model, AShortGetIsAskedFor) {
  Job job = job_of(wire_only(), 2);
  job.operations.assign(2, operation_of(job, Collective::window, 1 << 20, Path::dpu));
  for (Operation& get : job.operations) get.remote = Remote::get;
  job.operations[0].members = {0, 1};
  job.operations[1].members = {1, 0};
  job.operations[1].bytes = 8;
  const double wire_ns = kMiB / 0.125;
  job.ranks[0] = {{Act::Kind::post, 0, {0}}, {Act::Kind::wait, 0, {0}}};
  job.ranks[1] = {{Act::Kind::compute, wire_ns / 2, {}}, {Act::Kind::post, 0, {1}}, {Act::Kind::wait, 0, {1}}};
  const auto outcome = simulate(job);
  ASSERT_TRUE(outcome.ok()) << outcome.status().text();
  EXPECT_NEAR(outcome->act_end_ns[1][2], wire_ns, 0.05 * wire_ns);
}

// As the engine does it: a put needs an answer as much as a get does.
TEST(Model, AShortPutIsOverWhenItIsAnswered) {
  Machine m;
  m.service.own_cores = true;
  double ends[2];
  for (const Remote remote : {Remote::put, Remote::get}) {
    Job job = job_of(m, 2);
    job.operations = {operation_of(job, Collective::window, 8, Path::dpu)};
    job.operations[0].remote = remote;
    job.ranks[0] = {{Act::Kind::post, 0, {0}}, {Act::Kind::wait, 0, {0}}};
    const auto outcome = simulate(job);
    ASSERT_TRUE(outcome.ok()) << outcome.status().text();
    ends[remote == Remote::put ? 0 : 1] = outcome->end_ns;
    EXPECT_GT(outcome->end_ns, 2 * (m.latency_ns + m.service.wake_ns));
  }
  EXPECT_NEAR(ends[0] / ends[1], 1, 0.05);
}

// A chunk at a time, while one in a socket is not read yet.
TEST(Model, ASocketTakesNoMoreThanItsWindow) {
  Machine m = wire_only(0.125, 1e6);
  m.service.window_bytes = m.service.chunk_bytes;
  const double chunks = std::ceil(kMiB / 2 / m.service.chunk_bytes), expected = kMiB / 2 / 0.125 + chunks * 1e6;
  EXPECT_NEAR(time_of(m, 2, Collective::ialltoall, 1 << 20, Path::dpu), expected, 0.15 * expected);
  m.service.window_bytes = 2 * m.service.chunk_bytes;
  EXPECT_LT(time_of(m, 2, Collective::ialltoall, 1 << 20, Path::dpu), 0.7 * expected);
}

}  // namespace
}  // namespace offpath::model
