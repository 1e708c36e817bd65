// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <shmem.h>

#include "../../apps/kit/ranks.hpp"

namespace bench::rma {

static long long never;  // symmetric

struct Memory::State {
  char* base = nullptr;
};

const char* interface() { return "shmem"; }

// Open MPI looks at the network only while it waits for it: not in shmem_quiet with nothing outstanding, shmem_test or
// operations on the PE itself. So the target asks its origin for a word.
void progress() { shmem_longlong_g(&never, (kit::rank() + kit::ranks() / 2) % kit::ranks()); }

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
