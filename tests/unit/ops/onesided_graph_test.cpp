// SPDX-License-Identifier: BSD-3-Clause
// Graphs of long one-sided operations: both sides fit together in any order of events, and do what they are to do.
#include "../remote/body.hpp"
#include "interpreter.hpp"
#include "ops/onesided/onesided.hpp"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

using ops::onesided::Remote;
using ops::onesided::Tuning;

constexpr uint64_t kMemory = 32 << 10;
constexpr uint64_t kSendAt = 0, kResultAt = 16 << 10;  // of the origin
constexpr Tuning kSmall = {128, 16, 2};

ops::Topology topology(uint32_t rank) { return ops::Topology::make(rank, {0, 1}); }

std::vector<uint8_t> window_bytes(std::mt19937_64& random) {
  std::vector<uint8_t> out(kMemory);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}

// Byte `index` of the data that lies at `base` of a member's memory, with elements of 24 bytes with a gap.
uint64_t lies_at(uint64_t base, uint64_t index, bool strided) {
  return strided ? base + index / 24 * 32 + index % 24 + (index % 24 < 8 ? 0 : 8) : base + index;
}
graph::Layout gapped() { return {24, 32, {{0, 8}, {16, 16}}}; }

void run(offpath_remote_kind_t kind, offpath_operator_t op, uint64_t bytes, bool strided, uint64_t seed) {
  SCOPED_TRACE("kind " + std::to_string(kind) + " operator " + std::to_string(op) + " bytes " + std::to_string(bytes) +
               " strided " + std::to_string(strided) + " seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<Machine> machines = {{topology(0), window_bytes(random), {}}, {topology(1), window_bytes(random), {}}};
  Remote remote;
  remote.target = 1;
  remote.wanted.kind = kind;
  remote.wanted.bytes = bytes;
  if (remote::accumulates(kind)) remote.wanted.reduction = {op, OFFPATH_ELEMENT_U64};
  remote.wanted.contiguous = !strided;
  if (strided) {
    remote.wanted.layout = gapped();
    remote.layouts = {gapped()};
  }
  remote.send = {0, 0, kClientBase + kSendAt, bytes, strided ? 1U : 0U};
  remote.result = {0, 0, kClientBase + kResultAt, bytes, strided ? 1U : 0U};
  ASSERT_TRUE(check(remote, 2).ok()) << check(remote, 2).text();
  ASSERT_FALSE(is_short(remote.wanted));

  constexpr uint64_t kWindowAt = 64;
  std::vector<uint8_t> origin = machines[0].memory, target = machines[1].memory;
  const auto place = [&](std::vector<uint8_t>& memory, uint64_t base, uint64_t i) -> uint8_t& {
    return memory[lies_at(base, i, strided)];
  };
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t before = 0, data = 0;
    for (uint64_t i = 0; i < 8; ++i) {
      before |= uint64_t{place(target, kWindowAt, at + i)} << (8 * i);
      data |= uint64_t{place(origin, kSendAt, at + i)} << (8 * i);
    }
    const bool changes = remote::sends(remote.wanted);
    const uint64_t after = !changes ? before : kind == OFFPATH_PUT ? data : add(before, data);
    for (uint64_t i = 0; i < 8; ++i) {
      place(target, kWindowAt, at + i) = static_cast<uint8_t>(after >> (8 * i));
      if (remote::fetches(kind)) {
        place(origin, kResultAt, at + i) = static_cast<uint8_t>(before >> (8 * i));
      }
    }
  }
  machines[1].graph = expand_target(remote.wanted, 0, kClientBase + kWindowAt, kSmall);
  EXPECT_LE(machines[1].graph.scratch_bytes, 4 * std::max<uint64_t>(128, bytes / 16 + 64));
  graph::Request request = make_request(std::move(remote), kSmall);
  EXPECT_EQ(request.target, 1U);
  EXPECT_EQ(request.reply_bytes, 0U);
  machines[0].graph = std::move(request.graph);
  Interpreter interpreter(machines, add, seed);
  ASSERT_EQ(interpreter.run(), "");
  EXPECT_EQ(interpreter.empty_pulls() + interpreter.short_pulls(), 0U);
  EXPECT_TRUE(machines[0].memory == origin);
  EXPECT_TRUE(machines[1].memory == target);
}

TEST(OnesidedGraphs, DoWhatTheyAreToDo) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    for (const uint64_t bytes : {1032, 1152, 4104, 12000}) {  // the longest has longer pieces
      for (const bool strided : {false, true}) {
        run(OFFPATH_PUT, OFFPATH_OP_NONE, bytes, strided, seed);
        run(OFFPATH_GET, OFFPATH_OP_NONE, bytes, strided, seed);
        run(OFFPATH_ACCUMULATE, OFFPATH_OP_SUM, bytes, strided, seed);
        run(OFFPATH_GET_ACCUMULATE, OFFPATH_OP_SUM, bytes, strided, seed);
        run(OFFPATH_GET_ACCUMULATE, OFFPATH_OP_NO_OP, bytes, strided, seed);
      }
    }
  }
}

TEST(OnesidedGraphs, ShortOnesHaveNone) {
  Remote remote;
  remote.wanted.kind = OFFPATH_GET;
  remote.wanted.bytes = 1024;
  remote.result = {0, 0, 0x1000, 1024};
  const graph::Request request = make_request(remote);
  EXPECT_TRUE(request.graph.steps.empty() && request.graph.exports.empty());
  EXPECT_EQ(request.reply_bytes, 1024U);
  EXPECT_EQ(request.reply, graph::client_place(0x1000));
}

TEST(OnesidedRequest, RemotesThatMakeNoSenseAreRefused) {
  const auto code = [](auto change) {
    Remote remote;
    remote.wanted.kind = OFFPATH_GET_ACCUMULATE;
    remote.wanted.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_I64};
    remote.wanted.bytes = 8;
    remote.target = 1;
    remote.send = {0, 0, 0x1000, 8};
    remote.result = {0, 0, 0x2000, 8, 1};
    remote.layouts = {{4, 8, {{0, 4}}}};
    change(remote);
    return check(remote, 2).code();
  };
  EXPECT_EQ(code([](Remote&) {}), OFFPATH_OK);
  EXPECT_EQ(code([](Remote& r) { r.target = 2; }), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(code([](Remote& r) { r.result.layout = 2; }), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(code([](Remote& r) { r.send.layout = 2; }), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(code([](Remote& r) { r.send.address = UINT64_MAX - 3; }), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(code([](Remote& r) { r.layouts[0].size_bytes = 5; }), OFFPATH_ERR_ARGUMENT);
  // What is not used is not looked at.
  EXPECT_EQ(code([](Remote& r) { r.send.layout = 7, r.has_data = true; }), OFFPATH_OK);
  EXPECT_EQ(code([](Remote& r) { r.send.layout = 7, r.wanted.reduction.op = OFFPATH_OP_NO_OP; }), OFFPATH_OK);
}

std::vector<uint8_t> a_put(uint64_t window, size_t data_bytes = 8) {
  remote::testing::Body body;
  body.window = window;
  body.offset = 16;
  body.bytes = 8;
  body.contiguous = false;
  body.layout = {8, 16, {{-4, 4}, {4, 4}}};
  body.data.resize(data_bytes, 5);
  remote::testing::Raw raw = remote::testing::some();
  raw.wanted = encode(body);
  return encode(raw);
}

TEST(OnesidedRecord, SaysTheSame) {
  const auto remote = ops::onesided::read(a_put(9), 9, 2);
  ASSERT_TRUE(remote.ok()) << remote.status().text();
  EXPECT_EQ(remote->target, 1U);
  EXPECT_TRUE(remote->has_data);
  EXPECT_EQ(remote->wanted.window, 9U);
  EXPECT_EQ(remote->wanted.kind, OFFPATH_PUT);
  EXPECT_EQ(remote->wanted.offset, 16U);
  ASSERT_EQ(remote->wanted.layout.ranges.size(), 2U);
  EXPECT_EQ(remote->send, (memory::Block{0, 0, 0x1000, 8, 2}));
  ASSERT_EQ(remote->layouts.size(), 2U);
  EXPECT_EQ(remote->layouts[1].ranges[0].offset, -4);
}

TEST(OnesidedRecord, AnotherWindowAndBytesThatAreNoOperationAreRefused) {
  const auto code = [](const std::vector<uint8_t>& record) {
    return ops::onesided::read(record, 9, 2).status().code();
  };
  EXPECT_EQ(code(a_put(8)), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(code(a_put(9, 7)), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(code({}), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(ops::onesided::read(a_put(9), 9, 1).status().code(), OFFPATH_ERR_ARGUMENT) << "no such member";
  const auto elsewhere = ops::onesided::read(a_put(9, 0), 9, 2);
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status().text();
  EXPECT_FALSE(elsewhere->has_data) << "it lies with the client";
}

}  // namespace
}  // namespace offpath::testing
