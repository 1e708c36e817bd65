// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <mpi.h>

namespace bench::rma {
namespace {

// MPICH 4.0 finds another rank's memory at a wrong place where sizes are no multiples of 16.
constexpr std::int64_t kAlignment = 64;

}  // namespace

struct Memory::State {
  MPI_Win window = MPI_WIN_NULL;
  char* base = nullptr;
};

const char* interface() { return "mpi"; }

void progress() {
  int arrived = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
}

Memory::Memory(std::int64_t bytes) : state_(new State) {
  const std::int64_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  MPI_Win_allocate(padded, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &state_->base, &state_->window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, state_->window);
}

Memory::~Memory() {
  MPI_Win_unlock_all(state_->window);
  MPI_Win_free(&state_->window);
  delete state_;
}

char* Memory::base() const { return state_->base; }

void Memory::put(const char* from, std::int64_t bytes, int target, std::int64_t offset) {
  MPI_Put(from, int(bytes), MPI_BYTE, target, offset, int(bytes), MPI_BYTE, state_->window);
}

void Memory::get(char* to, std::int64_t bytes, int target, std::int64_t offset) {
  MPI_Get(to, int(bytes), MPI_BYTE, target, offset, int(bytes), MPI_BYTE, state_->window);
}

void Memory::fetch_add(const std::int64_t* value, std::int64_t* before, int target, std::int64_t offset) {
  MPI_Fetch_and_op(value, before, MPI_INT64_T, target, offset, MPI_SUM, state_->window);
}

void Memory::flush(int target) { MPI_Win_flush(target, state_->window); }
void Memory::sync() { MPI_Win_sync(state_->window); }

}  // namespace bench::rma
