// SPDX-License-Identifier: BSD-3-Clause
#include "store.hpp"

#include <algorithm>
#include <vector>

#include <mpi.h>

#include "../kit/ranks.hpp"

namespace bspmm {
namespace {

constexpr int kCounterRank = 0;
// MPICH 4.0 finds another rank's memory at a wrong place where sizes are no multiples of 16.
constexpr MPI_Aint kAlignment = 64;

template <class Element>
void allocate(MPI_Aint elements, Element** base, MPI_Win* window) {
  const MPI_Aint bytes = elements * MPI_Aint(sizeof(Element));
  const MPI_Aint padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  MPI_Win_allocate(padded, sizeof(Element), MPI_INFO_NULL, MPI_COMM_WORLD, base, window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, *window);
}

}  // namespace

// Two windows: the counter's flush must not wait for tiles that are under way.
struct Store::State {
  MPI_Win tiles = MPI_WIN_NULL, counter = MPI_WIN_NULL;
  double* memory = nullptr;
  std::int64_t* count = nullptr;
  std::vector<int> targets;  // of operations since the last wait
};

Store::Store(const Pattern& pattern, int tile, std::uint64_t seed)
    : state_(new State), count_(pattern.count()), tile_(tile) {
  allocate(elements_count(), &state_->memory, &state_->tiles);
  allocate(kit::rank() == kCounterRank ? 1 : 0, &state_->count, &state_->counter);
  fill(state_->memory, seed);
  reset();
}

Store::~Store() {
  for (MPI_Win* window : {&state_->tiles, &state_->counter}) {
    MPI_Win_unlock_all(*window);
    MPI_Win_free(window);
  }
  delete state_;
}

bool Store::adds() { return true; }

void Store::reset() {
  MPI_Barrier(MPI_COMM_WORLD);
  double* const first = state_->memory + offset(Matrix::c, 0);
  std::fill(first, state_->memory + elements_count(), 0.0);
  if (kit::rank() == kCounterRank) *state_->count = 0;
  MPI_Win_sync(state_->tiles);
  MPI_Win_sync(state_->counter);
  MPI_Barrier(MPI_COMM_WORLD);
}

const double* Store::mine(Matrix matrix, int number) const {
  MPI_Win_sync(state_->tiles);
  return owner(number) == kit::rank() ? state_->memory + offset(matrix, number) : nullptr;
}

void Store::get(Matrix matrix, int number, double* elements) {
  const int size = tile_ * tile_;
  MPI_Get(elements, size, MPI_DOUBLE, owner(number), offset(matrix, number), size, MPI_DOUBLE, state_->tiles);
  state_->targets.push_back(owner(number));
}

void Store::update(int number, const double* elements) {
  const int size = tile_ * tile_;
  MPI_Accumulate(elements, size, MPI_DOUBLE, owner(number), offset(Matrix::c, number), size, MPI_DOUBLE, MPI_SUM,
                 state_->tiles);
  state_->targets.push_back(owner(number));
}

void Store::wait() {
  std::vector<int>& targets = state_->targets;
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  for (const int target : targets) MPI_Win_flush(target, state_->tiles);
  targets.clear();
}

std::int64_t Store::next() {
  const std::int64_t one = 1;
  std::int64_t value = 0;
  MPI_Fetch_and_op(&one, &value, MPI_INT64_T, kCounterRank, 0, MPI_SUM, state_->counter);
  MPI_Win_flush(kCounterRank, state_->counter);
  return value;
}

}  // namespace bspmm
