/* SPDX-License-Identifier: BSD-3-Clause
 * Several threads at once, each with a communicator of its own. */
#include "conformance.h"

#include <pthread.h>
#include <stdlib.h>

enum { kMaxThreads = 16, kBatches = 20 };

typedef struct Worker {
  pthread_t thread;
  Comm comm;
  uint64_t seed;
  Report report;
} Worker;

static void* work(void* argument) {
  Worker* worker = argument;
  Random random = {mix(worker->seed)};
  Case* cases = calloc(kMaxBatch, sizeof(Case));
  for (int batch = 0; batch < kBatches && cases != NULL; ++batch) {
    const int count = 1 + random_below(&random, 6);
    for (int i = 0; i < count; ++i) {
      Case one = {.comm = &worker->comm, .op = (enum Operation)random_below(&random, kOperationsCount)};
      if (is_neighbor(one.op)) one.op = kAlltoallv; /* a duplicate of the world has no neighbours */
      one.pair = type_pair(random_below(&random, type_pairs_count()));
      one.reduction = reduction_at(random_below(&random, reductions_count()));
      one.units = random_below(&random, 30);
      one.root = random_below(&random, 64);
      one.in_place = random_below(&random, 3) == 0;
      one.seed = random_next(&random);
      cases[i] = one;
    }
    batch_run(cases, count, (enum Style)random_below(&random, kStylesCount), 1, &worker->report);
  }
  free(cases);
  return NULL;
}

int threads_run(int threads_count, uint64_t seed) {
  static Worker workers[kMaxThreads];
  int wrong = 0;
  if (threads_count > kMaxThreads) threads_count = kMaxThreads;
  for (int i = 0; i < threads_count; ++i) {
    workers[i].comm = comm_duplicate();
    workers[i].seed = mix(seed + (uint64_t)i);
  }
  for (int i = 0; i < threads_count; ++i)
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
  for (int i = 0; i < threads_count; ++i) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < threads_count; ++i) {
    wrong += report_flush(&workers[i].report);
    MPI_Comm_free(&workers[i].comm.handle);
  }
  return wrong;
}
