// SPDX-License-Identifier: BSD-3-Clause
#include "patches.hpp"

namespace amr {

double* Store::take(std::size_t doubles) {
  std::vector<double*>& free = free_[doubles];
  if (free.empty()) return more_(doubles);
  double* const memory = free.back();
  free.pop_back();
  return memory;
}

Patches::Patches(const Grid& grid, int rank, std::function<double*(std::size_t)> more)
    : first_(grid.first(rank)), store_(std::move(more)), all_(std::size_t(grid.first(rank + 1) - first_)) {
  for (int i = 0; i < int(all_.size()); ++i) {
    all_[std::size_t(i)].number = first_ + i;
    renew(all_[std::size_t(i)], grid.shape(first_ + i));
  }
}

Patch Patches::renew(Patch& patch, Shape shape) {
  const Patch before = patch;
  patch.shape = shape;
  patch.state = store_.take(shape.state());
  patch.next = store_.take(shape.state());
  patch.result = store_.take(shape.result());
  return before;
}

void Patches::release(const Patch& patch) {
  store_.give_back(patch.state, patch.shape.state());
  store_.give_back(patch.next, patch.shape.state());
  store_.give_back(patch.result, patch.shape.result());
}

}  // namespace amr
