/* SPDX-License-Identifier: BSD-3-Clause
 * For programs that have one place in MPI_COMM_WORLD in mind: which one, and what they and the driver tell each other by
 * files. */
#ifndef OFFPATH_TESTS_WORLD_H
#define OFFPATH_TESTS_WORLD_H

#include "check.h"

#include <unistd.h>

static int rank, size, right_of, left_of;

static inline void find_place(void) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  right_of = (rank + 1) % size;
  left_of = (rank + size - 1) % size;
}

static inline void enter(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  find_place();
}

/* What is granted. */
static inline int enter_with(int* argc, char*** argv, int threads) {
  int granted = threads;
  MPI_Init_thread(argc, argv, threads, &granted);
  find_place();
  return granted;
}

/* Or ends MPI: the caller is to return 77. */
static inline int enter_with_threads(int* argc, char*** argv) {
  if (enter_with(argc, argv, MPI_THREAD_MULTIPLE) == MPI_THREAD_MULTIPLE) return 1;
  printf("no thread support\n");
  MPI_Finalize();
  return 0;
}

/* Blocks of `count` integers, in exchange number `round`; whether the right ones have come. */
static inline int all_to_all(int* send, int* recv, int count, int round) {
  int ok = 1;
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < count; ++i) send[p * count + i] = value_of(rank, p, i, round);
  MPI_Request request;
  MPI_Ialltoall(send, count, MPI_INT, recv, count, MPI_INT, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < count; ++i) ok &= recv[p * count + i] == value_of(p, rank, i, round);
  return ok;
}

/* ---- with the driver */

static const char* folder;

/* Until the next call. */
static inline const char* path_of(const char* name) {
  static char path[4096];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return path;
}

static inline const char* numbered_path(const char* name, int number) {
  char with_number[100];
  snprintf(with_number, sizeof(with_number), "%s-%d", name, number);
  return path_of(with_number);
}

static inline void make_file(const char* path) {
  FILE* file = fopen(path, "w");
  if (file != NULL) fclose(file);
}

static inline void leave_mark(const char* name) { make_file(path_of(name)); }

/* Computes, as it were: no call of MPI. */
static inline void stay_out_until(const char* name) {
  while (access(path_of(name), F_OK) != 0) usleep(1000);
}

/* The driver does something when it sees the file named by `ready`, and then makes the file named by `go`. */
static inline void let_the_driver_act(const char* ready, const char* go) {
  if (rank == 0) make_file(getenv(ready));
  while (access(getenv(go), F_OK) != 0) usleep(1000);
}

/* It kills the service; with a client that loses its service by itself neither is set. */
static inline void let_the_driver_kill(void) {
  if (getenv("LOST_READY") == NULL || getenv("LOST_GO") == NULL) return;
  MPI_Barrier(MPI_COMM_WORLD);
  let_the_driver_act("LOST_READY", "LOST_GO");
}

/* Whether an error is of a class of Offpath's own, with a text that names it; says so if not. */
static inline int is_offpaths(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  if (strncmp(text, "Offpath: ", 9) == 0 && class_of(code) > MPI_ERR_LASTCODE) return 1;
  fprintf(stderr, "rank %d: not Offpath's own: %s\n", rank, error_words(code));
  return 0;
}

#endif
