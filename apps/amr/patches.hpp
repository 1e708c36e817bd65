// SPDX-License-Identifier: BSD-3-Clause
// A rank's patches and their memory, which comes from whoever advances them.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "grid.hpp"

namespace amr {

// Memory that is used again for the next patch of that size. It ends with who has given it.
class Store {
 public:
  explicit Store(std::function<double*(std::size_t)> more) : more_(std::move(more)) {}
  double* take(std::size_t doubles);
  void give_back(double* memory, std::size_t doubles) { free_[doubles].push_back(memory); }

 private:
  const std::function<double*(std::size_t)> more_;
  std::map<std::size_t, std::vector<double*>> free_;
};

struct Patch {
  int number = -1;
  Shape shape{};
  double* state = nullptr;   // now
  double* next = nullptr;    // after the time step, or what was there before
  double* result = nullptr;  // of the last time step
};

class Patches {
 public:
  Patches(const Grid& grid, int rank, std::function<double*(std::size_t)> more);

  std::vector<Patch>& all() { return all_; }
  const std::vector<Patch>& all() const { return all_; }
  Patch& of(int number) { return all_[std::size_t(number - first_)]; }
  bool holds(int number) const { return number >= first_ && number < first_ + int(all_.size()); }

  // Has it memory for that shape; what is in there is anything. What it had before, which is given back with release().
  Patch renew(Patch& patch, Shape shape);
  void release(const Patch& patch);

 private:
  const int first_;
  Store store_;
  std::vector<Patch> all_;
};

}  // namespace amr
