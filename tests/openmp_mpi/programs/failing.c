/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Regions inside MPI calls when something ends: "process": rank 1, "executor": its executor. "plain": nothing ends, and
 * the program has not asked for a thread level. A region is inside of its calls when its host has its message. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#pragma omp declare target
/* Never gets an answer. */
static int announce_and_wait(int rank) {
  int value = 1;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "REMOTE_DEST_HETERO", "1");
  MPI_Comm_set_info(MPI_COMM_WORLD, info);
  MPI_Send(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
  return MPI_Recv(&value, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
#pragma omp end declare target

static int plain(int rank) {
  int sum = 0;
  int code = 0;
#pragma omp target map(from : sum, code)
  {
    int mine = rank + 1;
    code = MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  printf("rank %d: class %d, sum %d\n", rank, code, sum);
  return code != MPI_SUCCESS ? 4 : sum == 3 ? 0 : 1;
}

int main(int argc, char** argv) {
  int rank = 0;
  int executor = 0;
  int code = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#pragma omp target map(from : executor)
  executor = (int)getpid();
  printf("executor %d\n", executor);
  fflush(stdout);
  if (strcmp(argv[1], "plain") == 0) {
    code = plain(rank);
    MPI_Finalize();
    return code;
  }
#pragma omp target nowait map(from : code)
  code = announce_and_wait(rank);
  MPI_Recv(&code, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) kill(strcmp(argv[1], "process") == 0 ? getpid() : executor, SIGKILL);
#pragma omp taskwait
  printf("went on\n");
  MPI_Finalize();
  return 0;
}
