/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

int MPI_Init(int* argc, char*** argv);
int MPI_Initialized(int* flag);

int main(int argc, char** argv) {
  int flag = 0;
  const int code = MPI_Init(&argc, &argv);
  MPI_Initialized(&flag);
  printf("initialized: %d\n", flag);
  return code;
}
