// SPDX-License-Identifier: BSD-3-Clause
#include "ranks.hpp"

#include <cstring>
#include <functional>
#include <string_view>

#include <shmem.h>
#include <unistd.h>

namespace kit {
namespace {

// Symmetric, as the library's reductions and collections want it.
template <class Number>
struct Scratch {
  Number value, result, work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
};
Scratch<double> doubles;
Scratch<long long> integers;
std::uint64_t node;
long sync_words[SHMEM_REDUCE_SYNC_SIZE], collect_words[SHMEM_COLLECT_SYNC_SIZE];

// The barriers keep the scratch memory of two calls apart.
template <class Number, class Reduction>
Number reduce(Scratch<Number>& scratch, Number value, Reduction reduction) {
  scratch.value = value;
  shmem_barrier_all();
  reduction(&scratch.result, &scratch.value, 1, 0, 0, shmem_n_pes(), scratch.work, sync_words);
  shmem_barrier_all();
  return scratch.result;
}

}  // namespace

void start(int*, char***, Threads) {
  for (long& word : sync_words) word = SHMEM_SYNC_VALUE;
  for (long& word : collect_words) word = SHMEM_SYNC_VALUE;
  shmem_init();
}
void stop() { shmem_finalize(); }

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
double sum(double value) { return reduce(doubles, value, shmem_double_sum_to_all); }
double maximum(double value) { return reduce(doubles, value, shmem_double_max_to_all); }
std::int64_t sum(std::int64_t value) { return reduce(integers, (long long)value, shmem_longlong_sum_to_all); }
std::int64_t maximum(std::int64_t value) { return reduce(integers, (long long)value, shmem_longlong_max_to_all); }

bool first_of_node() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  node = std::hash<std::string_view>{}(name);
  auto* nodes = static_cast<std::uint64_t*>(shmem_malloc(std::size_t(ranks()) * sizeof node));
  shmem_fcollect64(nodes, &node, 1, 0, 0, ranks(), collect_words);
  int first = 0;
  while (nodes[first] != node) ++first;
  shmem_free(nodes);
  return first == rank();
}

}  // namespace kit
