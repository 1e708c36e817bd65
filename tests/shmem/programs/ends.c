/* SPDX-License-Identifier: BSD-3-Clause
 * Ways to end, and things that go wrong. Usage: ends WAY */
#include "check.h"

#include <offpath/shmem.h>
#include <signal.h>
#include <unistd.h>

static long word, words[1000], sums[1000], work[1000], sync_words[SHMEM_REDUCE_SYNC_SIZE];

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "";
  if (strcmp(way, "start_pes") == 0) {
    start_pes(0);
    me = shmem_my_pe();
    pes = shmem_n_pes();
  } else if (strcmp(way, "threads") == 0) {
    int provided = -1;
    shmem_init_thread(SHMEM_THREAD_SINGLE, &provided);
    me = shmem_my_pe();
    pes = shmem_n_pes();
  } else if (strcmp(way, "many_threads") == 0) {
    int provided = -1;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    pes = shmem_n_pes();
  } else {
    begin();
  }
  const int right = (me + 1) % pes;
  shmem_long_p(&word, me + 1, right);
  shmem_barrier_all();
  report("put", word == (me + pes - 1) % pes + 1);
  for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) sync_words[i] = SHMEM_SYNC_VALUE;
  shmem_barrier_all();
  if (strcmp(way, "many_threads") == 0) {
    words[999] = me;
    shmem_long_sum_to_all(sums, words, 1000, 0, 0, pes, work, sync_words);
    report("reduce", sums[999] == pes * (pes - 1) / 2);
  }
  if (strcmp(way, "no_finalize") == 0 || strcmp(way, "start_pes") == 0) return 0;
  if (strcmp(way, "global_exit") == 0) {
    if (me == 0) shmem_global_exit(5);
    for (;;) shmem_long_wait_until(&word, SHMEM_CMP_EQ, -1);
  }
  if (strcmp(way, "bad_pe") == 0) shmem_long_p(&word, 1, pes + 3);
  if (strcmp(way, "bad_address") == 0) {
    long on_stack = 0;
    shmem_long_p(&on_stack, 1, right);
    shmem_quiet();
  }
  if (strcmp(way, "killed") == 0) {
    /* The last PE dies while the others use its memory. */
    if (me == pes - 1) raise(SIGKILL);
    for (;;) {
      shmem_long_get(words, words, 1000, pes - 1);
      shmem_long_atomic_inc(&word, pes - 1);
      shmem_quiet();
    }
  }
  const int collective = strcmp(way, "collective_killed") == 0, waits = strcmp(way, "waiting_killed") == 0;
  if (collective || waits || strcmp(way, "service_killed") == 0) {
    /* Somebody kills a service when the file is there. */
    FILE* ready = me == 0 ? fopen(getenv("ENDS_READY"), "w") : NULL;
    if (ready != NULL) fclose(ready);
    while (collective) {
      shmemx_req_t request;
      shmemx_long_sum_to_all_nb(sums, words, 1000, 0, 0, pes, work, sync_words, &request);
      shmemx_req_wait(&request);
    }
    for (long round = 1; waits; ++round) { /* nobody asks after the puts: all wait for what comes of them */
      if (me > 0) shmem_long_wait_until(words, SHMEM_CMP_GE, round);
      shmem_long_p(words, round, right);
      shmem_sync_all();
      if (me == 0) shmem_long_wait_until(words, SHMEM_CMP_GE, round);
    }
    for (;;) {
      shmem_long_get(words, words, 1000, right);
      shmem_long_atomic_inc(&word, right);
      shmem_quiet();
    }
  }
  return finish();
}
