// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations as the benchmark needs them. One program is linked with rma_mpi.cpp (MPI RMA: one epoch of
// lock_all, flush), another with rma_shmem.cpp (OpenSHMEM: quiet). One thread only. Errors end the program, as both
// libraries do by default.
#pragma once

#include <cstdint>

namespace bench::rma {

const char* interface();  // "mpi" or "shmem"

// Lets the library progress what others want of this rank; never waits.
void progress();

// As many bytes on each rank, reached by all. Made and destroyed collectively.
class Memory {
 public:
  explicit Memory(std::int64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  char* base() const;

  // They may return before anything has moved: flush is what completes them, here and at the target, and until then
  // the local memory stays as it is.
  void put(const char* from, std::int64_t bytes, int target, std::int64_t offset);
  void get(char* to, std::int64_t bytes, int target, std::int64_t offset);
  void fetch_add(const std::int64_t* value, std::int64_t* before, int target, std::int64_t offset);
  void flush(int target);

  // What others have completed can be loaded from base() behind it, what was stored there be got by others.
  void sync();

 private:
  struct State;
  State* state_;
};

}  // namespace bench::rma
