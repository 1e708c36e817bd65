/* SPDX-License-Identifier: BSD-3-Clause
 * What programs that test files share: rank 0 prints what every rank has, and a sum of a file. */
#ifndef OFFPATH_TESTS_FILES_H
#define OFFPATH_TESTS_FILES_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static inline unsigned char value(int of, size_t i) { return (unsigned char)(of * 37 + i * 11 + i / 251 + 1); }

static inline unsigned char* filled(int of, size_t bytes) {
  unsigned char* data = malloc(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = value(of, i);
  return data;
}

static inline void show(const char* what, long a, long b) {
  const long mine[2] = {a, b};
  long* all = malloc(2 * sizeof(long) * (size_t)ranks);
  MPI_Gather(mine, 2, MPI_LONG, all, 2, MPI_LONG, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < ranks; ++r) printf("%s: rank %d: %ld %ld\n", what, r, all[2 * r], all[2 * r + 1]);
  free(all);
}

static inline long sum_of(const unsigned char* data, size_t bytes) {
  unsigned long sum = 7;
  for (size_t i = 0; i < bytes; ++i) sum = sum * 31 + data[i];
  return (long)(sum % 1000000007UL);
}

static inline void show_file(const char* what, const char* name) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    FILE* file = fopen(name, "rb");
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    unsigned char* data = malloc((size_t)bytes + 1);
    rewind(file);
    const size_t got = fread(data, 1, (size_t)bytes, file);
    printf("%s: file of %ld bytes, sum %ld\n", what, bytes, sum_of(data, got));
    fflush(stdout);
    free(data);
    fclose(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static inline MPI_File open_new(const char* name) {
  MPI_File file;
  if (rank == 0) remove(name);
  MPI_Barrier(MPI_COMM_WORLD);
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
    printf("cannot open %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return file;
}

static inline int count_of(MPI_Status* status, MPI_Datatype type) {
  int count = -1;
  MPI_Get_count(status, type, &count);
  return count;
}

#endif
