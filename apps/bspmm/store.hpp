// SPDX-License-Identifier: BSD-3-Clause
// The tiles of A, B and C in the memory of all ranks, dealt round-robin, and the counter that deals out work:
// store_mpi.cpp with MPI RMA, store_shmem.cpp with OpenSHMEM. One thread only.
#pragma once

#include <cstdint>

#include "pattern.hpp"

namespace bspmm {

class Store {
 public:
  // Collective, as is the destructor. A and B are filled, C and the counter are zero after reset().
  Store(const Pattern& pattern, int tile, std::uint64_t seed);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Whether update adds to what is there, from any number of ranks at once (MPI_Accumulate). OpenSHMEM has nothing like
  // that for floating point; there it replaces, so one rank alone may make a tile of C, all of it.
  static bool adds();

  // Collective: C and the counter are zero afterwards.
  void reset();

  // Where this rank has that tile; nullptr: another has it.
  const double* mine(Matrix matrix, int number) const;

  // They may return before anything has moved, and elements is theirs until wait().
  void get(Matrix matrix, int number, double* elements);
  void update(int number, const double* elements);
  // All gets and updates of this rank are complete, at the target too.
  void wait();

  // 0, 1, 2, ... over all ranks since the last reset. Waits for the answer.
  std::int64_t next();

 private:
  int owner(int number) const;
  // In doubles from the start of the owner's memory.
  std::int64_t offset(Matrix matrix, int number) const;
  std::int64_t elements_count() const;  // of each rank's memory
  void fill(double* memory, std::uint64_t seed) const;

  struct State;
  State* state_;
  int count_, tile_;
};

}  // namespace bspmm
