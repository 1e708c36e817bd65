/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages between hosts and regions in all four directions, two ranks; the receiver's call is plain MPI_Recv. */
#include <mpi.h>
#include <stdio.h>

#pragma omp declare target
static void cross(int on) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "REMOTE_DEST_HETERO", on ? "1" : "0");
  MPI_Comm_set_info(MPI_COMM_WORLD, info);
  MPI_Info_delete(info, "REMOTE_DEST_HETERO");
  MPI_Info_free(&info);
}

static int message(int rank, int value, int crossing) {
  int got = value;
  if (rank == 0) {
    if (crossing) cross(1);
    MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (crossing) cross(0);
  } else {
    MPI_Recv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return got;
}
#pragma omp end declare target

int main(int argc, char** argv) {
  int rank = 0;
  int got[4] = {0, 0, 0, 0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  got[0] = message(rank, 3310, 0);
#pragma omp target map(from : got [1:1])
  got[1] = message(rank, 3311, 0);
  if (rank == 0) {
#pragma omp target map(from : got [2:1])
    got[2] = message(rank, 3312, 1);
    got[3] = message(rank, 3313, 1);
  } else {
    got[2] = message(rank, 3312, 0);
#pragma omp target map(from : got [3:1])
    got[3] = message(rank, 3313, 0);
  }
  printf("rank %d: %d %d %d %d\n", rank, got[0], got[1], got[2], got[3]);
  fflush(stdout);
  MPI_Finalize();
  return got[0] == 3310 && got[1] == 3311 && got[2] == 3312 && got[3] == 3313 ? 0 : 1;
}
