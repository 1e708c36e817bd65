// SPDX-License-Identifier: BSD-3-Clause
#include "job.hpp"

#include <cstring>

#include <shmem.h>

namespace bspmm::job {
namespace {

// Symmetric, as the reductions want it.
struct Scratch {
  double value, result;
  double work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
  long sync[SHMEM_REDUCE_SYNC_SIZE];
};
Scratch scratch;

// The barriers keep the scratch memory of two calls apart.
template <class Reduction>
double reduce(double value, Reduction reduction) {
  scratch.value = value;
  shmem_barrier_all();
  reduction(&scratch.result, &scratch.value, 1, 0, 0, shmem_n_pes(), scratch.work, scratch.sync);
  shmem_barrier_all();
  return scratch.result;
}

}  // namespace

void start(int*, char***) {
  for (long& word : scratch.sync) word = SHMEM_SYNC_VALUE;
  shmem_init();
}

void stop() { shmem_finalize(); }

std::string library() {
  char name[SHMEM_MAX_NAME_LEN] = {};
  shmem_info_get_name(name);
  return std::string(name, std::strcspn(name, "\n"));
}

int rank() { return shmem_my_pe(); }
int ranks() { return shmem_n_pes(); }

void barrier() { shmem_barrier_all(); }
double sum(double value) { return reduce(value, shmem_double_sum_to_all); }
double maximum(double value) { return reduce(value, shmem_double_max_to_all); }

}  // namespace bspmm::job
