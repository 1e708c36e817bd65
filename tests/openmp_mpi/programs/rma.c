/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Host and region make windows at the same time; rank 0's host puts into rank 1's region, its region into rank 1's
 * host. */
#include <mpi.h>
#include <stdio.h>

#pragma omp declare target
static int window_part(int rank, int value) {
  int window = -1;
  MPI_Win win;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Win_create(&window, sizeof(int), sizeof(int), info, MPI_COMM_WORLD, &win);
  if (rank == 0) {
    MPI_Info_set(info, "REMOTE_DEST_HETERO", "1");
    MPI_Win_set_info(win, info);
    MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    MPI_Info_delete(info, "REMOTE_DEST_HETERO");
  }
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  MPI_Info_free(&info);
  return window;
}
#pragma omp end declare target

int main(int argc, char** argv) {
  int rank = 0;
  int device = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#pragma omp target nowait map(from : device)
  device = window_part(rank, 6310);
  const int host = window_part(rank, 3310);
#pragma omp taskwait
  printf("rank %d: host %d, region %d\n", rank, host, device);
  MPI_Finalize();
  return rank != 1 || (host == 6310 && device == 3310) ? 0 : 1;
}
