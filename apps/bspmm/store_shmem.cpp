// SPDX-License-Identifier: BSD-3-Clause
#include "store.hpp"

#include <algorithm>

#include <shmem.h>

#include "../kit/ranks.hpp"

namespace bspmm {
namespace {

constexpr int kCounterRank = 0;

}  // namespace

// On the symmetric heap.
struct Store::State {
  double* memory = nullptr;
  long long* count = nullptr;
};

Store::Store(const Pattern& pattern, int tile, std::uint64_t seed)
    : state_(new State), count_(pattern.count()), tile_(tile) {
  state_->memory = static_cast<double*>(shmem_align(64, elements_count() * sizeof(double)));
  state_->count = static_cast<long long*>(shmem_malloc(sizeof(long long)));
  if (!state_->memory || !state_->count) shmem_global_exit(1);  // the heap is too small: SHMEM_SYMMETRIC_SIZE
  fill(state_->memory, seed);
  reset();
}

Store::~Store() {
  shmem_free(state_->count);
  shmem_free(state_->memory);
  delete state_;
}

bool Store::adds() { return false; }

void Store::reset() {
  shmem_barrier_all();
  double* const first = state_->memory + offset(Matrix::c, 0);
  std::fill(first, state_->memory + elements_count(), 0.0);
  *state_->count = 0;
  shmem_barrier_all();
}

const double* Store::mine(Matrix matrix, int number) const {
  return owner(number) == kit::rank() ? state_->memory + offset(matrix, number) : nullptr;
}

void Store::get(Matrix matrix, int number, double* elements) {
  shmem_double_get_nbi(elements, state_->memory + offset(matrix, number), tile_ * tile_, owner(number));
}

void Store::update(int number, const double* elements) {
  shmem_double_put_nbi(state_->memory + offset(Matrix::c, number), elements, tile_ * tile_, owner(number));
}

void Store::wait() { shmem_quiet(); }

std::int64_t Store::next() { return shmem_longlong_atomic_fetch_inc(state_->count, kCounterRank); }

}  // namespace bspmm
