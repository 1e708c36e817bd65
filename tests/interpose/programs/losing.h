/* SPDX-License-Identifier: BSD-3-Clause
 * Shared by programs with messages under way when the service dies: it is stopped once "there" is left, and ended once
 * "posted" is, which they learn from "stopped". */
#ifndef OFFPATH_TESTS_LOSING_H
#define OFFPATH_TESTS_LOSING_H

#include "world.h"

enum { BYTES = 20000 };

static int wrong;

static void expect(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  ++wrong;
}

static void end(const char* part) {
  report(part, wrong == 0);
  wrong = 0;
}

/* Each message has bytes of its own. */
static void fill(unsigned char* data, int from, int id) {
  for (int i = 0; i < BYTES; ++i) data[i] = (unsigned char)value_of(from, id, i, i / 251);
}

static int is_filled(const unsigned char* data, int bytes, int from, int id) {
  for (int i = 0; i < bytes; ++i)
    if (data[i] != (unsigned char)value_of(from, id, i, i / 251)) return 0;
  return 1;
}

static void stopped(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) leave_mark("there");
  stay_out_until("stopped");
}

static void posted(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) leave_mark("posted");
}

static void begin(int* argc, char*** argv, int threads) {
  enter_with(argc, argv, threads);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  folder = (*argv)[*argc - 1];
}

#endif
