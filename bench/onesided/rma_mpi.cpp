// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <cstring>

#include <mpi.h>

namespace bench::rma {
namespace {

// MPICH 4.0 finds another rank's memory at a wrong place where sizes are no multiples of 16.
constexpr std::int64_t kAlignment = 64;

std::int64_t reduce(std::int64_t value, MPI_Op op) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, op, MPI_COMM_WORLD);
  return value;
}

}  // namespace

struct Memory::State {
  MPI_Win window = MPI_WIN_NULL;
  char* base = nullptr;
};

void start(int* argc, char*** argv) { MPI_Init(argc, argv); }
void stop() { MPI_Finalize(); }

const char* interface() { return "mpi"; }

std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(text, std::strcspn(text, "\n"));
}

int rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
std::int64_t maximum(std::int64_t value) { return reduce(value, MPI_MAX); }
std::int64_t sum(std::int64_t value) { return reduce(value, MPI_SUM); }

bool first_of_node() {
  MPI_Comm node;
  int rank = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank);
  MPI_Comm_free(&node);
  return rank == 0;
}

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
