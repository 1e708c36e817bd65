// SPDX-License-Identifier: BSD-3-Clause
// Random vector programs against the definition, statement by statement over whole vectors; sparse rows; what may not
// change results; everything that check() refuses.
#include "kernels/vector_program.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace offpath::kernels {
namespace {

struct State {
  std::vector<double> scalars;
  std::vector<std::vector<double>> vectors;

  std::vector<uint8_t*> arrays() {
    std::vector<uint8_t*> out{reinterpret_cast<uint8_t*>(scalars.data())};
    for (auto& vector : vectors) out.push_back(reinterpret_cast<uint8_t*>(vector.data()));
    return out;
  }
};

void run(Kernel& kernel, const std::vector<uint8_t*>& arrays) { ASSERT_TRUE(run_alone(kernel, arrays).ok()); }

// Small integers, so that sums are exact in any order.
State draw_state(std::mt19937_64& random, uint32_t scalars, uint32_t vectors, uint64_t rows) {
  State out;
  const auto number = [&] { return static_cast<double>(random() % 7) - 3; };
  for (uint32_t i = 0; i < scalars; ++i) out.scalars.push_back(number());
  for (uint32_t i = 0; i < vectors; ++i) {
    out.vectors.emplace_back(rows);
    for (double& value : out.vectors.back()) value = number();
  }
  return out;
}

// Each vector is updated at most once, so that values stay small.
VectorProgram draw_program(std::mt19937_64& random, uint32_t scalars, uint32_t vectors, uint64_t rows) {
  VectorProgram out;
  out.rows = rows;
  out.scalars = scalars;
  out.vectors = vectors;
  const auto scalar = [&] { return static_cast<uint32_t>(random() % scalars); };
  const auto vector = [&] { return static_cast<uint32_t>(random() % vectors); };
  for (uint64_t i = random() % 3; i > 0; --i) {
    out.before.push_back(
        {random() % 2 == 0 ? OFFPATH_SCALAR_COPY : OFFPATH_SCALAR_SUBTRACT, scalar(), scalar(), scalar()});
  }
  for (uint32_t target = 0; target < vectors; ++target) {
    Statement& update = out.statements.emplace_back();
    update.target = target;
    for (uint64_t k = random() % (OFFPATH_UPDATE_TERMS_MAX + 1); k > 0; --k)
      update.terms.push_back({scalar(), vector()});
    if (random() % 2 == 0) out.statements.push_back({OFFPATH_DOT, scalar(), {{0, vector()}, {0, vector()}}});
  }
  return out;
}

void apply_naively(const VectorProgram& program, State& state) {
  run_scalar_steps(program.before, state.scalars.data());
  const std::vector<double> scalars = state.scalars;  // what dots write is not seen by the pass
  for (const Statement& statement : program.statements) {
    if (statement.kind == OFFPATH_DOT) {
      double sum = 0;
      for (uint64_t i = 0; i < program.rows; ++i) {
        sum += state.vectors[statement.terms[0].vector][i] * state.vectors[statement.terms[1].vector][i];
      }
      state.scalars[statement.target] = sum;
      continue;
    }
    for (uint64_t i = 0; i < program.rows; ++i) {
      double sum = 0;
      for (const Term& term : statement.terms) sum += scalars[term.scalar] * state.vectors[term.vector][i];
      state.vectors[statement.target][i] = sum;
    }
  }
}

TEST(VectorProgram, RandomOnesDoWhatTheySay) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const uint64_t sizes[] = {0, 1, 7, 8, 2047, 2048, 2049, 5000, random() % 9000};
    const uint64_t rows = sizes[random() % std::size(sizes)];
    const auto scalars = static_cast<uint32_t>(1 + random() % 6), vectors = static_cast<uint32_t>(1 + random() % 5);
    State state = draw_state(random, scalars, vectors, rows);
    const VectorProgram program = draw_program(random, scalars, vectors, rows);
    ASSERT_TRUE(check(program).ok()) << check(program).text();
    State expected = state;
    apply_naively(program, expected);
    run(*make_pass(program), state.arrays());
    EXPECT_EQ(state.vectors, expected.vectors);
    EXPECT_EQ(state.scalars, expected.scalars);
  }
}

TEST(VectorProgram, ADotIsTheSameWhereverItsVectorsLie) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> number(-1, 1);
  constexpr uint64_t kRows = 6001;
  std::vector<double> memory(2 * kRows + 8);
  VectorProgram program;
  program.rows = kRows;
  program.scalars = 1;
  program.vectors = 2;
  program.statements = {{OFFPATH_DOT, 0, {{0, 0}, {0, 1}}}};
  std::vector<double> left(kRows), right(kRows);
  for (double& value : left) value = number(random);
  for (double& value : right) value = number(random);
  double first = 0;
  for (size_t shift = 0; shift < 8; ++shift) {
    double result = 0;
    std::copy(left.begin(), left.end(), memory.begin() + static_cast<ptrdiff_t>(shift));
    std::copy(right.begin(), right.end(), memory.begin() + static_cast<ptrdiff_t>(shift + kRows));
    run(*make_pass(program), {reinterpret_cast<uint8_t*>(&result), reinterpret_cast<uint8_t*>(memory.data() + shift),
                              reinterpret_cast<uint8_t*>(memory.data() + shift + kRows)});
    if (shift == 0) first = result;
    EXPECT_EQ(result, first);
  }
}

TEST(VectorProgram, ScalarStepsGoInOrder) {
  double scalars[] = {12, 3, 0, 0};
  run_scalar_steps(std::vector<ScalarStep>{{OFFPATH_SCALAR_DIVIDE, 2, 0, 1},
                                           {OFFPATH_SCALAR_SQRT, 2, 2, 0},
                                           {OFFPATH_SCALAR_ADD, 3, 2, 1},
                                           {OFFPATH_SCALAR_MULTIPLY, 3, 3, 3},
                                           {OFFPATH_SCALAR_SUBTRACT, 0, 3, 0},
                                           {OFFPATH_SCALAR_COPY, 1, 0, 0}},
                   scalars);
  EXPECT_EQ(scalars[2], 2);
  EXPECT_EQ(scalars[3], 25);
  EXPECT_EQ(scalars[0], 13);
  EXPECT_EQ(scalars[1], 13);
  double inverse[] = {1, 0, 0};
  run_scalar_steps(std::vector<ScalarStep>{{OFFPATH_SCALAR_DIVIDE, 2, 0, 1}}, inverse);
  EXPECT_TRUE(std::isinf(inverse[2]));
  run_scalar_steps(std::vector<ScalarStep>{{OFFPATH_SCALAR_DIVIDE, 0, 1, 1}}, inverse);
  EXPECT_EQ(inverse[0], 0);  // a solver that has arrived
}

// What a client may write into its columns and offsets while the service reads them.
TEST(Multiply, WildEntriesStayInside) {
  constexpr uint64_t kRows = 100;
  std::mt19937_64 random(3);
  std::vector<int32_t> offsets(kRows + 1), columns(3 * kRows);
  std::vector<double> values(3 * kRows, 1), source(50, 1), target(kRows);
  for (int round = 0; round < 200; ++round) {
    for (int32_t& offset : offsets) offset = static_cast<int32_t>(random());
    for (int32_t& column : columns) column = static_cast<int32_t>(random());
    offsets[1] = INT32_MAX, offsets[2] = INT32_MIN;
    run(*make_multiply({kRows, 3 * kRows, 50}),
        {reinterpret_cast<uint8_t*>(offsets.data()), reinterpret_cast<uint8_t*>(columns.data()),
         reinterpret_cast<uint8_t*>(values.data()), reinterpret_cast<uint8_t*>(source.data()),
         reinterpret_cast<uint8_t*>(target.data())});
  }
}

TEST(VectorProgram, RefusesWhatDoesNotExist) {
  VectorProgram good;
  good.rows = 10;
  good.scalars = 2;
  good.vectors = 2;
  EXPECT_TRUE(check(good).ok());
  const auto refused = [&](const Statement& statement) {
    VectorProgram bad = good;
    bad.statements.push_back(statement);
    return check(bad).code() == OFFPATH_ERR_ARGUMENT;
  };
  EXPECT_TRUE(refused({OFFPATH_UPDATE, 2, {}}));
  EXPECT_TRUE(refused({OFFPATH_UPDATE, 0, {{2, 0}}}));
  EXPECT_TRUE(refused({OFFPATH_UPDATE, 0, {{0, 2}}}));
  EXPECT_TRUE(refused({OFFPATH_UPDATE, 0, {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}}));
  EXPECT_TRUE(refused({OFFPATH_DOT, 2, {{0, 0}, {0, 0}}}));
  EXPECT_TRUE(refused({OFFPATH_DOT, 0, {{0, 0}}}));
  EXPECT_TRUE(refused({OFFPATH_DOT, 0, {{0, 0}, {0, UINT32_MAX}}}));
  EXPECT_TRUE(refused({static_cast<offpath_statement_kind_t>(3), 0, {{0, 0}, {0, 0}}}));
  VectorProgram bad = good;
  bad.after = {{static_cast<offpath_scalar_op_t>(7), 0, 0, 0}};
  EXPECT_EQ(check(bad).code(), OFFPATH_ERR_ARGUMENT);
  bad.after = {{OFFPATH_SCALAR_ADD, 0, 0, 2}};
  EXPECT_EQ(check(bad).code(), OFFPATH_ERR_ARGUMENT);
  bad.after.clear();
  bad.rows = UINT64_MAX;
  EXPECT_EQ(check(bad).code(), OFFPATH_ERR_ARGUMENT);
}

}  // namespace
}  // namespace offpath::kernels
