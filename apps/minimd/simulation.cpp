// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include <algorithm>

#include "lattice.hpp"

namespace minimd {

Simulation::Simulation(const Domain& domain, const Options& options, std::string& problem)
    : domain_(domain),
      options_(options),
      cells_(domain, options.reach()),
      total_(atoms_of_lattice(options.cells)),
      guard_(options.skin),
      balance_(options.share / 100.0) {
  if (options.schedule == Schedule::relaxed) off_ = make_same_side(domain_, cells_);
  if (options.schedule == Schedule::offpath || options.schedule == Schedule::hybrid)
    off_ = make_off_side(domain_, cells_, options_, problem);
}

void Simulation::run() {
  atoms_ = make_lattice(domain_, options_.cells);
  set_temperature(atoms_, total_, Options::kTemperature);
  new_lists();
  host_forces(true);
  take_thermo(0);
  if (off_) off_->settle();
  begin_timing();
  for (int number = 1; number <= options_.steps; ++number) {
    step(number);
    if (number == options_.warm_up) begin_timing();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  seconds_ = MPI_Wtime() - begin_;
  if (off_) off_->settle();
}

void Simulation::begin_timing() {
  MPI_Barrier(MPI_COMM_WORLD);
  profile_.clear();
  counts_ = {};
  if (off_) off_->clear_times();
  begin_ = MPI_Wtime();
}

void Simulation::step(int number) {
  const bool with_sums = number % options_.thermo == 0 || number == options_.steps;
  const bool planned = number % options_.every == 0;
  profile_.charge(Phase::integrate, [&] { first_half(); });
  bool exceeded = false;
  if (options_.guarded()) profile_.charge(Phase::guard, [&] { exceeded = guard_.exceeded(atoms_.x); });
  counts_.rebuilds += planned;
  counts_.guard_hits += exceeded;
  if (planned && off_ && !exceeded) {
    relaxed_step(with_sums);
  } else {
    if (planned || exceeded) new_lists();
    if (options_.schedule == Schedule::hybrid && off_->arrived())
      shared_forces(with_sums);
    else
      host_forces(with_sums);
  }
  profile_.charge(Phase::integrate, [&] { second_half(); });
  if (with_sums) profile_.charge(Phase::thermo, [&] { take_thermo(number); });
}

void Simulation::first_half() {
  constexpr double kHalf = 0.5 * Options::kTimeStep;
  for (int i = 0; i < 3 * atoms_.local; ++i) {
    atoms_.v[i] += kHalf * atoms_.f[i];
    atoms_.x[i] += Options::kTimeStep * atoms_.v[i];
  }
}

void Simulation::second_half() {
  for (int i = 0; i < 3 * atoms_.local; ++i) atoms_.v[i] += 0.5 * Options::kTimeStep * atoms_.f[i];
}

void Simulation::new_lists() {
  current_ = 1 - current_;
  rebuild(atoms_, domain_, cells_, options_.reach(), structure(), profile_);
  if (options_.guarded()) guard_.built(atoms_.x, atoms_.local);
  if (off_) profile_.charge(Phase::ship, [&] { off_->accept(structure()); });
}

void Simulation::host_forces(bool with_sums) {
  const Structure& s = structure();
  profile_.charge(Phase::halo,
                  [&] { forward(s.swaps, kSwaps, s.send.data(), atoms_.x.data(), domain_.rank, buffer_); });
  profile_.charge(Phase::force, [&] {
    atoms_.f.assign(3 * std::size_t(atoms_.all()), 0.0);
    sums_ = add_forces(atoms_.x.data(), atoms_.f.data(), s.list(), 0, s.local, Options::kCutoff, with_sums);
  });
  profile_.charge(Phase::reverse, [&] { reverse(s.swaps, s.send.data(), atoms_.f.data(), domain_.rank, buffer_); });
}

// The other side has the last atoms, the host the first ones, and what both do to the same atom is added up.
void Simulation::shared_forces(bool with_sums) {
  const Structure& s = structure();
  const int own = own_share();
  ++counts_.shared;
  profile_.charge(Phase::halo,
                  [&] { forward(s.swaps, kSwaps, s.send.data(), atoms_.x.data(), domain_.rank, buffer_); });
  const double before = profile_.seconds(Phase::force), off_before = off_->times().share;
  profile_.charge(Phase::post, [&] { off_->begin_share(atoms_.x, own, with_sums); });
  profile_.charge(Phase::force, [&] {
    atoms_.f.assign(3 * std::size_t(atoms_.all()), 0.0);
    sums_ = add_forces(atoms_.x.data(), atoms_.f.data(), s.list(), 0, own, Options::kCutoff, with_sums);
  });
  profile_.charge(Phase::wait, [&] {
    const Sums theirs = off_->finish_share(atoms_.f);
    sums_.energy += theirs.energy;
    sums_.virial += theirs.virial;
  });
  balance_.took(profile_.seconds(Phase::force) - before, off_->times().share - off_before);
  profile_.charge(Phase::reverse, [&] { reverse(s.swaps, s.send.data(), atoms_.f.data(), domain_.rank, buffer_); });
}

// So many atoms as have the host's part of all pairs.
int Simulation::own_share() const {
  const std::vector<int>& first = structure().first;
  const int pairs = int((1 - balance_.theirs()) * first.back());
  return int(std::lower_bound(first.begin(), first.end() - 1, pairs) - first.begin());
}

void Simulation::relaxed_step(bool with_sums) {
  ++counts_.relaxed;
  profile_.charge(Phase::ship, [&] { off_->settle(); });
  profile_.charge(Phase::post, [&] { off_->begin_all(atoms_.x, atoms_.local, with_sums); });
  current_ = 1 - current_;
  rebuild(atoms_, domain_, cells_, options_.reach(), structure(), profile_);
  if (options_.guarded()) guard_.built(atoms_.x, atoms_.local);
  profile_.charge(Phase::wait, [&] { sums_ = off_->finish_all(atoms_.f); });
  if (atoms_.f.size() != 3 * std::size_t(atoms_.local)) complete_ = false;
  atoms_.f.resize(3 * std::size_t(atoms_.all()));
  profile_.charge(Phase::ship, [&] { off_->accept(structure()); });
}

void Simulation::take_thermo(int number) {
  thermo_.push_back(measure(number, atoms_, sums_, total_, domain_.volume()));
  std::int64_t there = atoms_.local;
  MPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (there != total_) complete_ = false;
}

}  // namespace minimd
