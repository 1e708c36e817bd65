// SPDX-License-Identifier: BSD-3-Clause
// The parts of apps/amr that are pure: levels, cells that become finer and coarser, steps of patches side by side.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "apps/amr/advance.hpp"
#include "apps/amr/edges.hpp"
#include "apps/amr/exact.hpp"
#include "apps/amr/grid.hpp"
#include "apps/amr/refine.hpp"

namespace amr {
namespace {

using Values = std::vector<double>;

bool is_graded(const Grid& grid) {
  for (int p = 0; p < grid.patches(); ++p)
    for (int dx = -1; dx <= 1; ++dx)
      for (int dy = -1; dy <= 1; ++dy)
        if (const int q = grid.neighbour(p, dx, dy); q >= 0 && std::abs(grid.level(p) - grid.level(q)) > 1)
          return false;
  return true;
}

TEST(AmrGrid, NeighboursDifferByOneLevelOnTheWayToAnythingWanted) {
  std::mt19937 random(1);
  Grid grid(9, 7, 4, 3);
  for (int round = 0; round < 300; ++round) {
    std::vector<int> busy(63, 0);
    for (int i = 0; i < int(random() % 6); ++i) busy[random() % 63] = 1;
    const std::vector<int> wanted = grid.wanted(busy, 4), before = grid.levels();
    grid.set_levels(grid.towards(wanted));
    ASSERT_TRUE(is_graded(grid)) << round;
    for (int p = 0; p < 63; ++p) {
      ASSERT_LE(std::abs(grid.level(p) - before[std::size_t(p)]), 1);
      if (busy[std::size_t(p)]) {
        ASSERT_EQ(wanted[std::size_t(p)], 4);
      }
    }
  }
}

TEST(AmrGrid, EachPatchHasOneOwnerAlsoWhereRanksHaveNone) {
  const Grid grid(3, 1, 4, 5);
  for (int p = 0; p < 3; ++p) {
    EXPECT_GE(p, grid.first(grid.owner(p)));
    EXPECT_LT(p, grid.first(grid.owner(p) + 1));
  }
}

Values random_state(Shape shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> depth(0.5, 2), momentum(-0.5, 0.5);
  Values state(shape.state());
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = i < shape.field() ? depth(random) : momentum(random);
  return state;
}

double amount(Shape shape, const Values& state, int field) {
  double sum = 0;
  for (int j = 0; j < shape.n; ++j)
    for (int i = 0; i < shape.n; ++i) sum += state[std::size_t(field) * shape.field() + shape.at(i, j)];
  return sum / (double(shape.n) * shape.n);
}

TEST(AmrRefine, KeepsWhatThereIs) {
  const Shape coarse{6}, fine{12};
  const Values before = random_state(coarse, 2);
  Values finer(fine.state()), back(coarse.state());
  change_cells(coarse, before.data(), fine, finer.data());
  change_cells(fine, finer.data(), coarse, back.data());
  for (int f = 0; f < 3; ++f) EXPECT_NEAR(amount(fine, finer, f), amount(coarse, before, f), 1e-14);
  for (int j = 0; j < 6; ++j)
    for (int i = 0; i < 6; ++i) EXPECT_NEAR(back[coarse.at(i, j)], before[coarse.at(i, j)], 1e-14);
}

// A coarse patch west of a fine one, walls around both: what one loses the other gets.
TEST(AmrEdges, NoWaterIsLostBetweenCoarseAndFine) {
  const Shape coarse{4}, fine{8};
  Values west = random_state(coarse, 3), east = random_state(fine, 4);
  Values next_west(west.size()), next_east(east.size()), result_west(coarse.result()), result_east(fine.result());
  const auto give = [](Shape from, const Values& state, Shape to, Values& target, int dx) {
    Values values(ghosts_count(to, dx, 0));
    take_ghosts(from, state.data(), to, dx, 0, values.data());
    put_ghosts(to, target.data(), dx, 0, values.data());
  };
  give(fine, east, coarse, west, 1);
  give(coarse, west, fine, east, -1);
  for (const Side side : {kWest, kSouth, kNorth}) mirror(coarse, west.data(), side);
  for (const Side side : {kEast, kSouth, kNorth}) mirror(fine, east.data(), side);
  const double time_step = 0.005;
  advance(coarse, west.data(), next_west.data(), result_west.data(), time_step * coarse.n);
  advance(fine, east.data(), next_east.data(), result_east.data(), time_step * fine.n);
  const double before = amount(coarse, west, 0) + amount(fine, east, 0);
  EXPECT_GT(std::fabs(amount(coarse, next_west, 0) + amount(fine, next_east, 0) - before), 1e-6);
  Values fluxes(fluxes_count(coarse));
  take_fluxes(fine, result_east.data(), coarse, kEast, fluxes.data());
  correct(coarse, next_west.data(), result_west.data(), kEast, time_step * coarse.n, fluxes.data());
  EXPECT_NEAR(amount(coarse, next_west, 0) + amount(fine, next_east, 0), before, 1e-15 * 10);
}

// Two patches that give each other their ghosts are one twice as long.
TEST(AmrAdvance, DoesNotDependOnWhereAPatchEnds) {
  const Shape half{8};
  const auto column = [](int i, int j) {
    return Column{1.5 + std::sin(0.7 * i + 0.3 * j), 0.2 * std::cos(0.5 * i - j), 0.1 * std::sin(0.9 * j + 0.2 * i)};
  };
  const auto state = [&](int from) {
    Values values(half.state());
    for (int j = -kGhosts; j < 8 + kGhosts; ++j)
      for (int i = -kGhosts; i < 8 + kGhosts; ++i) {
        const Column c = column(from + i, j);
        values[half.at(i, j)] = c.h, values[half.field() + half.at(i, j)] = c.hu;
        values[2 * half.field() + half.at(i, j)] = c.hv;
      }
    return values;
  };
  Values next[2], result[2];
  for (int k : {0, 1}) {  // the second begins in the middle of the first
    next[k].resize(half.state()), result[k].resize(half.result());
    advance(half, state(4 * k).data(), next[k].data(), result[k].data(), 0.1);
  }
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 4; ++i)
      for (int f = 0; f < 3; ++f) {
        const std::size_t at = std::size_t(f) * half.field();
        ASSERT_EQ(next[0][at + half.at(i + 4, j)], next[1][at + half.at(i, j)]);
      }
}

TEST(AmrExact, KeepsTheWaterOfABrokenDam) {
  const DamBreak dam(2, 1);
  double sum = 0;
  constexpr int kCells = 100000;
  for (int i = 0; i < kCells; ++i) sum += dam.depth(-4 + 8 * (i + 0.5) / kCells, 1.5) * 8 / kCells;
  EXPECT_NEAR(sum, 12, 1e-4);
  EXPECT_GT(dam.ahead(1), std::sqrt(1.5));  // faster than waves in front of it
  EXPECT_EQ(dam.depth(-3, 1), 2);
  EXPECT_EQ(dam.depth(3, 1), 1);
}

}  // namespace
}  // namespace amr
