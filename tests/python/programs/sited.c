/* SPDX-License-Identifier: BSD-3-Clause
 * Calls from one function that others call, from inlined ones, and from a second thread, in regions with names; and a child
 * process that names regions, too. The tests look for the words behind "site:" in the lines of the calls. */
#include <mpi.h>
#include <offpath/region.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1 << 18 };

static double *to, *from;

static inline __attribute__((always_inline)) void exchange(MPI_Request* request) {
  MPI_Ialltoall(to, COUNT, MPI_DOUBLE, from, COUNT, MPI_DOUBLE, MPI_COMM_WORLD, request); /* site: inlined */
}

static __attribute__((noinline)) void step(void) {
  MPI_Request request;
  offpath_region_begin("step");
  offpath_region_begin("post");
  exchange(&request); /* site: around */
  offpath_region_end("post");
  MPI_Wait(&request, MPI_STATUS_IGNORE); /* site: wait */
  offpath_region_end("step");
}

static void* other_thread(void* comm) {
  offpath_region_begin("other thread");
  MPI_Barrier(*(MPI_Comm*)comm); /* site: thread */
  offpath_region_end("other thread");
  return NULL;
}

/* A child has a copy of what was recorded. It must neither write that, nor wait for a thread that it does not have. */
static int child_runs(void) {
  int status = 1;
  const pid_t child = fork();
  for (int i = 0; child == 0 && i < 100000; ++i) {
    offpath_region_begin("child");
    offpath_region_end("child");
  }
  if (child == 0) _exit(0);
  return waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char** argv) {
  int rank, size, provided;
  offpath_region_begin("before MPI"); /* not recorded, and nor is its end */
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  offpath_region_end("before MPI");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  to = calloc((size_t)COUNT * size, sizeof(double));
  from = calloc((size_t)COUNT * size, sizeof(double));
  for (int i = 0; i < 3; ++i) step();
  offpath_region_begin("forgotten");
  offpath_region_begin("inner");
  MPI_Allreduce(&rank, &size, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* site: reduce */
  MPI_Status status;
  MPI_Request none = MPI_REQUEST_NULL;
  int index = 0, done = 1 << 30; /* a call that fails leaves it so */
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Waitsome(-1, &none, &done, &index, &status); /* site: some */
  offpath_region_end("forgotten");                 /* with what was begun inside */
  offpath_region_end("never begun");
  errno = 42;
  for (int i = 0; i < 1000; ++i) {
    char name[400];
    snprintf(name, sizeof(name), "%0*d", i < 2 ? 399 : 1, i % 7);
    offpath_region_begin(name);
    offpath_region_end(name);
  }
  offpath_region_begin(NULL);
  offpath_region_end(NULL);
  if (errno != 42) return 3;
  if (provided == MPI_THREAD_MULTIPLE) {
    MPI_Comm comm;
    pthread_t thread;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    pthread_create(&thread, NULL, other_thread, &comm);
    pthread_join(thread, NULL);
    MPI_Comm_free(&comm);
  }
  if (!child_runs()) return 4;
  offpath_region_begin("left open");
  MPI_Finalize();
  offpath_region_end("left open");
  return 0;
}
