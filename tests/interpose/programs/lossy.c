/* SPDX-License-Identifier: BSD-3-Clause
 * Numbers sent in every way, of which something may be lost on the way to another node: no more than the argument says. What is
 * no number, is reduced, or is sent on a communicator that wants nothing lost, arrives as it was. Two ranks or more. */
#include <math.h>

#include "world.h"

enum { kCount = 20000 };

static double bound;

static double wave(int from, int i) { return from + sin(0.01 * i) * cos(0.003 * i); }

/* How far off is what came from `from`? */
static double error_of(const double* got, int from) {
  double largest = 0;
  for (int i = 0; i < kCount; ++i) largest = fmax(largest, fabs(got[i] - wave(from, i)));
  return largest;
}

static void within(const char* name, double error, double allowed) {
  if (!(error <= allowed)) fprintf(stderr, "rank %d: %s is off by %g\n", rank, name, error);
  report(name, error <= allowed);
}

static double alltoall(MPI_Comm comm, MPI_Datatype type, int count, double* send, double* recv) {
  MPI_Request request;
  double error = 0;
  for (int to = 0; to < size; ++to) {
    for (int i = 0; i < kCount; ++i) send[to * kCount + i] = wave(rank, i);
  }
  memset(recv, 0, sizeof(double) * kCount * (size_t)size);
  MPI_Ialltoall(send, count, type, recv, count, type, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int from = 0; from < size; ++from) error = fmax(error, error_of(recv + from * kCount, from));
  return error;
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  bound = argc > 1 ? atof(argv[1]) : 0;
  const size_t bytes = sizeof(double) * kCount * (size_t)size;
  double *send = malloc(bytes), *recv = malloc(bytes);
  MPI_Request request;

  within("doubles", alltoall(MPI_COMM_WORLD, MPI_DOUBLE, kCount, send, recv), bound);
  MPI_Datatype row;
  MPI_Type_contiguous(100, MPI_DOUBLE, &row);
  MPI_Type_commit(&row);
  within("rows of doubles", alltoall(MPI_COMM_WORLD, row, kCount / 100, send, recv), bound);
  within("bytes", alltoall(MPI_COMM_WORLD, MPI_BYTE, kCount * 8, send, recv), 0);

  MPI_Comm exact;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "offpath_compress", "zstd:shuffle=8");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &exact);
  within("doubles on an exact communicator", alltoall(exact, MPI_DOUBLE, kCount, send, recv), 0);
  MPI_Comm_free(&exact);
  MPI_Info_free(&info);

  for (int i = 0; i < kCount; ++i) send[i] = wave(rank, i);
  MPI_Iallgather(send, kCount, MPI_DOUBLE, recv, kCount, MPI_DOUBLE, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  double error = 0;
  for (int from = 0; from < size; ++from) error = fmax(error, error_of(recv + from * kCount, from));
  within("allgather", error, bound);

  for (int i = 0; i < kCount; ++i) recv[i] = wave(0, i) * (rank == 0);
  MPI_Ibcast(recv, kCount, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  within("broadcast", error_of(recv, 0), bound);

  /* Sums of whole numbers are exact in any order. */
  for (int i = 0; i < kCount; ++i) send[i] = (i * 7919 + rank) % 1000;
  MPI_Iallreduce(send, recv, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  error = 0;
  for (int i = 0; i < kCount; ++i) {
    double sum = 0;
    for (int from = 0; from < size; ++from) sum += (i * 7919 + from) % 1000;
    error = fmax(error, fabs(recv[i] - sum));
  }
  within("reduction", error, 0);

  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (int i = 0; i < kCount; ++i) send[i] = wave(rank, i);
  memset(recv, 0, sizeof(double) * kCount);
  MPI_Irecv(recv, kCount, MPI_DOUBLE, from, 3, MPI_COMM_WORLD, &request);
  MPI_Send(send, kCount, MPI_DOUBLE, to, 3, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  within("message", error_of(recv, from), bound);

  double* base;
  MPI_Win window;
  MPI_Win_allocate(sizeof(double) * 2 * kCount, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  memcpy(base + kCount, send, sizeof(double) * kCount);
  MPI_Win_fence(0, window);
  MPI_Put(send, kCount, MPI_DOUBLE, to, 0, kCount, MPI_DOUBLE, window);
  MPI_Get(recv, kCount, MPI_DOUBLE, from, kCount, kCount, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
  within("put", error_of(base, from), bound);
  within("get", error_of(recv, from), bound);
  MPI_Win_free(&window);

  MPI_Type_free(&row);
  free(send);
  free(recv);
  return finish();
}
