/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What people write first, one program each: pipeline (blocks of an all-to-all, one computed while another travels), halo BYTES
 * (neighbours on a ring), late and early (the same, which computes before its exchange and beside it), farm (tasks drawn by MPI_Fetch_and_op, results put), cg (pipelined conjugate gradients). */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 6, TASKS = 400, POINTS = 2000 };

static int rank, size;

static void fail(const char* what) {
  fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double work(double* values, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += sqrt(values[i] + 1.0);
  return sum;
}

static void pipeline(void) {
  const int count = 64 << 10;  // 512 KiB for each rank
  double* send = calloc((size_t)count * size * 2, sizeof *send);
  double* receive = calloc((size_t)count * size * 2, sizeof *send);
  MPI_Request request = MPI_REQUEST_NULL;
  for (int round = 0; round < ROUNDS; ++round) {
    double* next = send + (size_t)(round % 2) * count * size;
    for (int i = 0; i < count * size; ++i) next[i] = rank + round;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ialltoall(next, count, MPI_DOUBLE, receive, count, MPI_DOUBLE, MPI_COMM_WORLD, &request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int from = 0; from < size; ++from) {
    if (receive[(size_t)from * count] != from + ROUNDS - 1) fail("a block");
  }
  free(send);
  free(receive);
}

static void halo(int bytes) {
  const int count = bytes / (int)sizeof(double), left = (rank + size - 1) % size, right = (rank + 1) % size;
  double* field = calloc((size_t)count * 4, sizeof *field);  // halo, own edges, halo
  double kept = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = count; i < 3 * count; ++i) field[i] = rank + round;
    MPI_Request requests[4];
    MPI_Irecv(field, count, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(field + 3 * count, count, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(field + 2 * count, count, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(field + count, count, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[3]);
    kept += work(field + count, 2 * count);
    MPI_Status statuses[4];
    MPI_Waitall(4, requests, statuses);
    if (field[0] != left + round || field[3 * count] != right + round) fail("a halo");
  }
  if (kept < 0) fail("the sum");
  free(field);
}

/* It sleeps where a program would compute. */
static void steps(int is_early) {
  enum { COUNT = 128 << 10, STEPS = 160, SLEEP_US = 25000 };
  double *out = calloc(COUNT, sizeof *out), *in = calloc(COUNT, sizeof *in);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  for (int step = 0; step < STEPS; ++step) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    out[0] = rank + step;
    if (!is_early) usleep(SLEEP_US);
    MPI_Irecv(in, COUNT, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, COUNT, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[1]);
    if (is_early) usleep(SLEEP_US);
    MPI_Waitall(2, requests, statuses);
    if (in[0] != left + step) fail("a step");
  }
  free(out);
  free(in);
}

static void farm(void) {
  long* memory;
  MPI_Win window;
  MPI_Win_allocate((MPI_Aint)(TASKS + 1) * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                   &window);
  memset(memory, 0, (TASKS + 1) * sizeof(long));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  const long one = 1;
  for (;;) {
    long task;
    MPI_Fetch_and_op(&one, &task, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    if (task >= TASKS) break;
    const long result = task * task + 1;
    MPI_Put(&result, 1, MPI_LONG, 0, task + 1, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  for (long task = 0; rank == 0 && task < TASKS; ++task) {
    if (memory[task + 1] != task * task + 1) fail("a result");
  }
  MPI_Win_free(&window);
}

/* y = A x of a tridiagonal matrix; the halo of one number goes by blocking calls. */
static void multiply(const double* x, double* y) {
  double before = 0, after = 0;
  const int left = rank ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(&x[POINTS - 1], 1, MPI_DOUBLE, right, 0, &before, 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(&x[0], 1, MPI_DOUBLE, left, 1, &after, 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < POINTS; ++i) {
    y[i] = 2.5 * x[i] - (i ? x[i - 1] : before) - (i < POINTS - 1 ? x[i + 1] : after);
  }
}

/* Ghysels and Vanroose: one sum of two numbers an iteration, under way while the matrix is applied. */
static void cg(void) {
  double x[POINTS] = {0}, r[POINTS], w[POINTS], n[POINTS], p[POINTS] = {0}, s[POINTS] = {0}, z[POINTS] = {0};
  for (int i = 0; i < POINTS; ++i) r[i] = 1.0 + rank;
  multiply(r, w);
  double last = 0, alpha = 0, first = 0, sums[2] = {0, 0};
  for (int round = 0; round < 40; ++round) {
    double own[2] = {0, 0};
    for (int i = 0; i < POINTS; ++i) {
      own[0] += r[i] * r[i];
      own[1] += w[i] * r[i];
    }
    MPI_Request request;
    MPI_Iallreduce(own, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    multiply(w, n);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double beta = round ? sums[0] / last : 0;
    alpha = sums[0] / (round ? sums[1] - beta * sums[0] / alpha : sums[1]);
    last = sums[0];
    if (round == 0) first = last;
    for (int i = 0; i < POINTS; ++i) {
      z[i] = n[i] + beta * z[i];
      s[i] = w[i] + beta * s[i];
      p[i] = r[i] + beta * p[i];
      x[i] += alpha * p[i];
      r[i] -= alpha * s[i];
      w[i] -= alpha * z[i];
    }
  }
  if (!(last < 1e-12 * first)) fail("the residual");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* name = argc > 1 ? argv[1] : "";
  if (!strcmp(name, "pipeline")) pipeline();
  if (!strcmp(name, "halo")) halo(atoi(argv[2]));
  if (!strcmp(name, "late") || !strcmp(name, "early")) steps(!strcmp(name, "early"));
  if (!strcmp(name, "farm")) farm();
  if (!strcmp(name, "cg")) cg();
  return MPI_Finalize();
}
