// SPDX-License-Identifier: BSD-3-Clause
// Graphs of vector programs: what comes before what, on whose memory, and which programs are refused.
#include "ops/programs/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace offpath::testing {
namespace {

using graph::Graph;
using graph::StepKind;
using ops::Program;
using ops::Topology;

constexpr uint64_t kRows = 100, kScalarsAt = 1 << 20, kVectorsAt = 1 << 21;

Program program_of(uint32_t vectors, uint32_t scalars) {
  Program out;
  out.vector.rows = kRows;
  out.vector.vectors = vectors;
  out.vector.scalars = scalars;
  out.scalars = kScalarsAt;
  for (uint32_t i = 0; i < vectors; ++i) out.vectors.push_back(kVectorsAt + i * kRows * sizeof(double));
  return out;
}

// s1 = (v0, v1) over the team, then s2 = s1 * s1.
Program dot_program() {
  Program out = program_of(2, 3);
  out.vector.statements = {{OFFPATH_DOT, 1, {{0, 0}, {0, 1}}}};
  out.vector.after = {{OFFPATH_SCALAR_MULTIPLY, 2, 1, 1}};
  out.reduce_first = 1;
  out.reduce_count = 1;
  return out;
}

ops::MatrixRows rows_of_matrix() {
  ops::MatrixRows out;
  out.shape = {10, 30, kRows};
  out.first_row = 5;
  out.offsets = 1 << 22;
  out.columns = 1 << 23;
  out.values = 1 << 24;
  out.source = 0;
  out.target = 1;
  return out;
}

// Steps that cannot begin before `step` is done.
std::set<uint32_t> later_than(const Graph& graph, uint32_t step) {
  std::set<uint32_t> found;
  std::function<void(uint32_t)> visit = [&](uint32_t from) {
    for (const uint32_t next : graph.steps[from].next) {
      if (found.insert(next).second) visit(next);
    }
  };
  visit(step);
  return found;
}

// The computations in their order.
std::vector<uint32_t> computations(const Graph& graph) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < graph.steps.size(); ++i) {
    if (graph.steps[i].kind == StepKind::compute) out.push_back(i);
  }
  std::sort(out.begin(), out.end(),
            [&](uint32_t left, uint32_t right) { return later_than(graph, left).count(right) != 0; });
  return out;
}

TEST(ProgramGraph, WithoutSumsIsOnePass) {
  Program program = program_of(2, 1);
  program.vector.statements = {{OFFPATH_UPDATE, 0, {{0, 1}}}};
  ASSERT_TRUE(check(program).ok());
  const Graph graph = expand(std::move(program), Topology::make(1, {1, 2, 1}));
  ASSERT_EQ(graph.steps.size(), 1U);
  EXPECT_TRUE(graph.exports.empty());
  EXPECT_TRUE(graph.in_order);
  const auto& arrays = graph.steps[0].compute->arrays;
  ASSERT_EQ(arrays.size(), 3U);
  EXPECT_EQ(arrays[0].place, graph::client_place(kScalarsAt));
  EXPECT_EQ(arrays[0].bytes, sizeof(double));
  EXPECT_EQ(arrays[2].place, graph::client_place(kVectorsAt + kRows * sizeof(double)));
  EXPECT_EQ(arrays[2].bytes, kRows * sizeof(double));
}

TEST(ProgramGraph, SumsLieBetweenThePassAndTheScalarSteps) {
  for (const std::vector<uint64_t>& nodes : {std::vector<uint64_t>{1, 1, 1, 1}, {1, 2, 1, 2, 3}, {7, 8}, {5}}) {
    for (uint32_t rank = 0; rank < nodes.size(); ++rank) {
      const Graph graph = expand(dot_program(), Topology::make(rank, nodes));
      const auto computed = computations(graph);
      ASSERT_EQ(computed.size(), 2U);
      EXPECT_EQ(graph.steps[computed[0]].waits, 0U);
      EXPECT_EQ(later_than(graph, computed[0]).size(), graph.steps.size() - 1);
      for (uint32_t i = 0; i < graph.steps.size(); ++i) {
        if (i == computed[1]) continue;
        EXPECT_TRUE(later_than(graph, i).count(computed[1])) << "step " << i << " of rank " << rank;
      }
      for (const graph::Export& block : graph.exports) EXPECT_NE(block.after, graph::kNoStep);
      EXPECT_TRUE(graph.in_order);
    }
  }
}

TEST(ProgramGraph, MatricesComeBeforeThePass) {
  Program program = dot_program();
  program.matrices = {rows_of_matrix(), rows_of_matrix()};
  program.matrices[1].first_row = 40;
  ASSERT_TRUE(check(program).ok());
  const Graph graph = expand(std::move(program), Topology::make(0, {1, 1}));
  const auto computed = computations(graph);
  ASSERT_EQ(computed.size(), 4U);
  const auto& arrays = graph.steps[computed[0]].compute->arrays;
  ASSERT_EQ(arrays.size(), 5U);
  EXPECT_EQ(arrays[0].bytes, 11 * sizeof(int32_t));
  EXPECT_EQ(arrays[1].bytes, 30 * sizeof(int32_t));
  EXPECT_EQ(arrays[2].bytes, 30 * sizeof(double));
  EXPECT_EQ(arrays[3].place, graph::client_place(kVectorsAt));
  EXPECT_EQ(arrays[4].place, graph::client_place(kVectorsAt + (kRows + 5) * sizeof(double)));
  EXPECT_EQ(arrays[4].bytes, 10 * sizeof(double));
  EXPECT_EQ(graph.steps[computed[1]].compute->arrays[4].place,
            graph::client_place(kVectorsAt + (kRows + 40) * sizeof(double)));
  EXPECT_EQ(graph.steps[computed[2]].compute->arrays.size(), 3U);  // the pass: scalars and vectors
}

// Bytes from the client, and back to it, by address; everything else is on other memory and between the two.
std::pair<std::map<uint64_t, uint64_t>, std::map<uint64_t, uint64_t>> crossings(const Program& program) {
  EXPECT_TRUE(check(program).ok());
  const ops::Far far{memory::make_direct(), memory::make_direct()};
  const Graph graph = expand(program, Topology::make(0, {1, 2}), &far);
  EXPECT_EQ(graph.memory, far.here);
  EXPECT_EQ(graph.files, std::vector{far.client});
  std::map<uint64_t, uint64_t> in, out;
  const auto computed = computations(graph);
  for (uint32_t i = 0; i < graph.steps.size(); ++i) {
    const graph::Step& step = graph.steps[i];
    if (step.source.file == step.target.file) continue;
    EXPECT_EQ(step.source.base, step.target.base);
    (step.source.file != 0 ? in : out)[step.source.base] += step.bytes;
    if (step.source.file != 0) {
      EXPECT_TRUE(later_than(graph, i).count(computed.front()));
    } else {
      EXPECT_TRUE(later_than(graph, computed.back()).count(i));
    }
  }
  return {in, out};
}

TEST(ProgramGraph, OnAnotherMachineAllThatIsReadOrWrittenCrosses) {
  const auto [in, out] = crossings(dot_program());
  EXPECT_EQ(in, (std::map<uint64_t, uint64_t>{{kScalarsAt, 24}, {kVectorsAt, 800}, {kVectorsAt + 800, 800}}));
  EXPECT_EQ(out, (std::map<uint64_t, uint64_t>{{kScalarsAt, 24}}));
  Program updates = program_of(3, 1);
  updates.vector.statements = {{OFFPATH_UPDATE, 0, {{0, 1}}}};
  const auto [read, written] = crossings(updates);
  EXPECT_EQ(read, (std::map<uint64_t, uint64_t>{{kScalarsAt, 8}, {kVectorsAt + 800, 800}}));
  EXPECT_EQ(written, (std::map<uint64_t, uint64_t>{{kScalarsAt, 8}, {kVectorsAt, 800}}));
}

TEST(ProgramGraph, OnAnotherMachineWhatIsNamedCrosses) {
  Program program = dot_program();
  program.crossing = {{}, {}, false};
  const std::map<uint64_t, uint64_t> scalars{{kScalarsAt, 24}};
  EXPECT_EQ(crossings(program), std::pair(scalars, scalars));
  program.crossing = {{1}, {0}, false};
  const auto [in, out] = crossings(program);
  EXPECT_EQ(in, (std::map<uint64_t, uint64_t>{{kScalarsAt, 24}, {kVectorsAt + 800, 800}}));
  EXPECT_EQ(out, (std::map<uint64_t, uint64_t>{{kScalarsAt, 24}, {kVectorsAt, 800}}));
  program.crossing = {{2}, {}, false};
  EXPECT_EQ(check(program).code(), OFFPATH_ERR_ARGUMENT);
  program.crossing = {{}, {UINT32_MAX}, false};
  EXPECT_EQ(check(program).code(), OFFPATH_ERR_ARGUMENT);
}

TEST(ProgramGraph, MatricesCrossOnceAndTheirRowsGoBack) {
  for (const bool matrices : {false, true}) {
    Program program = program_of(2, 1);
    program.matrices = {rows_of_matrix()};
    program.crossing = {{0}, {1}, matrices};
    const auto [in, out] = crossings(program);
    EXPECT_EQ(in.contains(1 << 22), matrices);
    EXPECT_EQ(in.size(), matrices ? 5U : 2U);
    EXPECT_EQ(in.at(kVectorsAt), kRows * 8);
    EXPECT_EQ(out, (std::map<uint64_t, uint64_t>{{kScalarsAt, 8}, {kVectorsAt + (kRows + 5) * 8, 80}}));
  }
}

TEST(ProgramGraph, RefusesWhatMakesNoSense) {
  const auto refused = [](const std::function<void(Program&)>& damage) {
    Program program = dot_program();
    program.matrices = {rows_of_matrix()};
    EXPECT_TRUE(check(program).ok());
    damage(program);
    return check(program).code() == OFFPATH_ERR_ARGUMENT;
  };
  EXPECT_TRUE(refused([](Program& p) { p.scalars += 4; }));
  EXPECT_TRUE(refused([](Program& p) { p.vectors[1] += 1; }));
  EXPECT_TRUE(refused([](Program& p) { p.vectors.pop_back(); }));
  EXPECT_TRUE(refused([](Program& p) { p.vector.scalars = 0; }));
  EXPECT_TRUE(refused([](Program& p) { p.reduce_count = 3; }));
  EXPECT_TRUE(refused([](Program& p) { p.reduce_first = UINT32_MAX; }));
  EXPECT_TRUE(refused([](Program& p) { p.vector.statements[0].terms[1].vector = 2; }));
  EXPECT_TRUE(refused([](Program& p) { p.vector.after[0].result = 3; }));
  EXPECT_TRUE(refused([](Program& p) { p.matrices[0].first_row = kRows - 9; }));
  EXPECT_TRUE(refused([](Program& p) { p.matrices[0].first_row = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Program& p) { p.matrices[0].source = 2; }));
  EXPECT_TRUE(refused([](Program& p) { p.matrices[0].shape.columns = 0; }));
  EXPECT_TRUE(refused([](Program& p) { p.matrices[0].shape.entries = uint64_t{1} << 31; }));
  EXPECT_TRUE(refused([](Program& p) { p.matrices[0].columns += 2; }));
}

}  // namespace
}  // namespace offpath::testing
