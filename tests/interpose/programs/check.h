/* SPDX-License-Identifier: BSD-3-Clause
 * Shared by the test programs: every rank checks its own data, rank 0 prints one line per check, in order, so that
 * native and preloaded runs must print the same. The exit status says whether all were right. */
#ifndef OFFPATH_TESTS_CHECK_H
#define OFFPATH_TESTS_CHECK_H

#include "../../mpi_errors.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;

/* What rank `from` sends to rank `to` as element `i` of exchange number `round`. */
static inline int value_of(int from, int to, int i, int round) {
  return from * 1000003 + to * 7919 + i * 31 + round * 104729;
}

/* `recv` has the sums of what the ranks up to `last` send to rank 0. */
static inline int are_sums(const int* recv, int count, int last) {
  int ok = 1;
  for (int i = 0; i < count; ++i) {
    int sum = 0;
    for (int from = 0; from <= last; ++from) sum += value_of(from, 0, i, 0);
    ok = ok && recv[i] == sum;
  }
  return ok;
}

static inline void report(const char* name, int ok) {
  int rank, all = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!ok) fprintf(stderr, "rank %d: %s is wrong\n", rank, name);
  MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!all) ++check_failures;
  if (rank == 0) printf("%s: %s\n", name, all ? "ok" : "WRONG");
}

static inline int finish(void) {
  MPI_Finalize();
  return check_failures == 0 ? 0 : 1;
}

#endif
