// SPDX-License-Identifier: BSD-3-Clause
// A program that saves its state when it is told to: communicates, says "ready", waits for signal USR1 (with an
// argument: for ever), communicates again and says "saved". A scheduler may send that signal to all processes of a job.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t told;

static void note(int number) {
  (void)number;
  told = 1;
}

static void communicate(void) {
  enum { COUNT = 4096 };
  static int from[64 * COUNT], to[64 * COUNT];
  MPI_Request request;
  MPI_Ialltoall(from, COUNT, MPI_INT, to, COUNT, MPI_INT, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  const struct timespec nap = {0, 10000000};
  struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  MPI_Init(&argc, &argv);
  communicate();
  printf("ready\n");
  fflush(stdout);
  while (!told || argc > 1) nanosleep(&nap, NULL);
  communicate();
  printf("saved\n");
  MPI_Finalize();
  return 0;
}
