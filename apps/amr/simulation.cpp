// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include <algorithm>
#include <cmath>

#include <mpi.h>

#include "flow.hpp"
#include "refine.hpp"

namespace amr {
namespace {

// At the middle of a cell, in a basin of that size. The wave is bent, and as fast as one that runs to the east alone.
Column start_at(Case scene, double x, double y, double across, double down) {
  constexpr double kLow = Options::kShallow, kHigh = Options::kDeep;
  if (scene == Case::rest) return {kLow, 0, 0};
  if (scene == Case::dam) return {x < 0.5 * across ? kHigh : kLow, 0, 0};
  const double away = (x - 0.1 * across) / 0.5 + 0.3 * std::cos(3 * y / down);
  const double h = kLow + (kHigh - kLow) * std::exp(-away * away);
  return {h, 2 * h * (std::sqrt(h) - std::sqrt(kLow)), 0};
}

}  // namespace

Simulation::Simulation(const Options& options, int rank, int ranks, std::string& problem)
    : options_(options),
      rank_(rank),
      grid_(options.across, options.down, options.cells, ranks),
      advancer_(options.who == Who::own ? make_own(options_) : make_tasks(options_, problem)) {
  if (!advancer_) return;
  patches_ = std::make_unique<Patches>(grid_, rank, [&](std::size_t doubles) { return advancer_->allocate(doubles); });
  neighbours_ = std::make_unique<Neighbours>(grid_, *patches_, rank);
}

void Simulation::run() {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int number = 0; number < options_.steps; ++number) {
    meet(Phase::ghosts, [&] { neighbours_->fill_ghosts(); });
    if (number % options_.every == 0) {
      profile_.charge(Phase::refine, [&] { refine(); });
      loads_.push_back(0);
    }
    step();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  seconds_ = MPI_Wtime() - start;
}

void Simulation::begin() {
  set_cells();
  for (int level = 1; level < options_.levels; ++level) {
    neighbours_->fill_ghosts();
    grid_.set_levels(grid_.towards(grid_.wanted(busy(), options_.levels - 1)));
    for (Patch& patch : patches_->all()) patches_->release(patches_->renew(patch, grid_.shape(patch.number)));
    neighbours_->plan();
    set_cells();
  }
}

void Simulation::set_cells() {
  for (Patch& patch : patches_->all()) {
    const Shape s = patch.shape;
    double fastest = 0;
    for (int j = 0; j < s.n; ++j)
      for (int i = 0; i < s.n; ++i) {
        const double x = grid_.x(patch.number) + (i + 0.5) / s.n, y = grid_.y(patch.number) + (j + 0.5) / s.n;
        const Column start = start_at(options_.scene, x, y, grid_.across(), grid_.down());
        patch.state[s.at(i, j)] = start.h;
        patch.state[s.field() + s.at(i, j)] = start.hu;
        patch.state[2 * s.field() + s.at(i, j)] = start.hv;
        fastest = std::max(fastest, speed(start));
      }
    patch.result[s.fastest()] = fastest;
  }
}

// By patch, of all ranks. Ghosts are filled.
std::vector<int> Simulation::busy() {
  std::vector<int> found(std::size_t(grid_.patches()), 0);
  for (const Patch& patch : patches_->all())
    found[std::size_t(patch.number)] = is_busy(patch.shape, patch.state, options_.tolerance);
  MPI_Allreduce(MPI_IN_PLACE, found.data(), int(found.size()), MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return found;
}

void Simulation::refine() {
  const std::vector<int> levels = grid_.towards(grid_.wanted(busy(), options_.levels - 1));
  if (levels == grid_.levels()) return;
  grid_.set_levels(levels);
  for (Patch& patch : patches_->all()) {
    const Shape shape = grid_.shape(patch.number);
    if (shape.n == patch.shape.n) continue;
    const Patch before = patches_->renew(patch, shape);
    change_cells(before.shape, before.state, shape, patch.state);
    patch.result[shape.fastest()] = before.result[before.shape.fastest()];
    patches_->release(before);
    ++changed_;
  }
  neighbours_->plan();
  neighbours_->fill_ghosts();
}

// No wave passes more than a part of a cell.
double Simulation::longest_step() {
  double fastest = 0;
  for (const Patch& patch : patches_->all())
    fastest = std::max(fastest, patch.result[patch.shape.fastest()] * patch.shape.n);
  MPI_Allreduce(MPI_IN_PLACE, &fastest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return Options::kCourant / fastest;
}

void Simulation::step() {
  double time_step = 0;
  meet(Phase::step, [&] { time_step = longest_step(); });
  profile_.charge(Phase::advance, [&] { loads_.back() += advancer_->advance(patches_->all(), time_step); });
  meet(Phase::fluxes, [&] { neighbours_->correct_fluxes(time_step); });
  for (Patch& patch : patches_->all()) {
    std::swap(patch.state, patch.next);
    cell_steps_ += std::int64_t(patch.shape.n) * patch.shape.n;
  }
  time_ += time_step;
}

}  // namespace amr
