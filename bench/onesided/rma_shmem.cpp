// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <cstring>
#include <functional>
#include <string_view>

#include <shmem.h>
#include <unistd.h>

namespace bench::rma {
namespace {

// Symmetric, as the library's reductions and collections want it.
struct Scratch {
  long long value, result, never;
  long long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
  long sync[SHMEM_REDUCE_SYNC_SIZE];
  std::uint64_t node;
  long collect_sync[SHMEM_COLLECT_SYNC_SIZE];
};
Scratch scratch;

using Reduction = void (*)(long long*, const long long*, int, int, int, int, long long*, long*);

// The barriers keep the scratch memory of two calls apart.
std::int64_t reduce(std::int64_t value, Reduction reduction) {
  scratch.value = value;
  shmem_barrier_all();
  reduction(&scratch.result, &scratch.value, 1, 0, 0, shmem_n_pes(), scratch.work, scratch.sync);
  shmem_barrier_all();
  return scratch.result;
}

}  // namespace

struct Memory::State {
  char* base = nullptr;
};

void start(int*, char***) {
  for (long& word : scratch.sync) word = SHMEM_SYNC_VALUE;
  for (long& word : scratch.collect_sync) word = SHMEM_SYNC_VALUE;
  shmem_init();
}

void stop() { shmem_finalize(); }

const char* interface() { return "shmem"; }

std::string library() {
  char name[SHMEM_MAX_NAME_LEN] = {};
  int major = 0, minor = 0;
  shmem_info_get_name(name);
  shmem_info_get_version(&major, &minor);
  return std::string(name, std::strcspn(name, "\n")) + ", OpenSHMEM " + std::to_string(major) + "." +
         std::to_string(minor);
}

int rank() { return shmem_my_pe(); }
int ranks() { return shmem_n_pes(); }

void barrier() { shmem_barrier_all(); }
std::int64_t maximum(std::int64_t value) {
  return reduce(value, [](auto... arguments) { shmem_longlong_max_to_all(arguments...); });
}
std::int64_t sum(std::int64_t value) {
  return reduce(value, [](auto... arguments) { shmem_longlong_sum_to_all(arguments...); });
}

bool first_of_node() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  scratch.node = std::hash<std::string_view>{}(name);
  auto* nodes = static_cast<std::uint64_t*>(shmem_malloc(ranks() * sizeof(std::uint64_t)));
  shmem_fcollect64(nodes, &scratch.node, 1, 0, 0, ranks(), scratch.collect_sync);
  int first = 0;
  while (nodes[first] != scratch.node) ++first;
  shmem_free(nodes);
  return first == rank();
}

// Open MPI looks at the network only while it waits for it: not in shmem_quiet with nothing outstanding, shmem_test or
// operations on the PE itself. So the target asks its origin for a word.
void progress() { shmem_longlong_g(&scratch.never, (rank() + ranks() / 2) % ranks()); }

Memory::Memory(std::int64_t bytes) : state_(new State) {
  state_->base = static_cast<char*>(shmem_align(4096, std::size_t(bytes)));
}

Memory::~Memory() {
  shmem_free(state_->base);
  delete state_;
}

char* Memory::base() const { return state_->base; }

void Memory::put(const char* from, std::int64_t bytes, int target, std::int64_t offset) {
  shmem_putmem_nbi(state_->base + offset, from, std::size_t(bytes), target);
}

void Memory::get(char* to, std::int64_t bytes, int target, std::int64_t offset) {
  shmem_getmem_nbi(to, state_->base + offset, std::size_t(bytes), target);
}

void Memory::fetch_add(const std::int64_t* value, std::int64_t* before, int target, std::int64_t offset) {
  *before = shmem_longlong_atomic_fetch_add(reinterpret_cast<long long*>(state_->base + offset), *value, target);
}

void Memory::flush(int) { shmem_quiet(); }

void Memory::sync() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

}  // namespace bench::rma
