/* SPDX-License-Identifier: BSD-3-Clause
 * A window whose rank 0 gives the info key "offpath" a value, the argument; the others give it another. */
#include "check.h"

int main(int argc, char** argv) {
  int rank, size;
  long memory = -1, value;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Info info;
  MPI_Win win;
  MPI_Info_create(&info);
  const char* const word = rank == 0 && argc > 1 ? argv[1] : rank == 0 ? "" : rank % 2 == 0 ? "dpu" : "host";
  if (*word != '\0') MPI_Info_set(info, "offpath", word);
  MPI_Win_create(&memory, sizeof(long), sizeof(long), info, MPI_COMM_WORLD, &win);
  value = rank;
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win);
  MPI_Win_fence(0, win);
  report("info", memory == (rank + size - 1) % size);
  MPI_Win_free(&win);
  MPI_Info_free(&info);
  return finish();
}
