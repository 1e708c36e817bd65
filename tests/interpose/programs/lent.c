/* SPDX-License-Identifier: BSD-3-Clause
 * Memory that the program asks MPI for: nothing shows where it comes from. With the argument "after" also what MPI does
 * not allow: memory that is freed after MPI_Finalize. With "windows" only windows. */
#define _GNU_SOURCE
#include "world.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

enum { COUNT = 48 * 1024, MANY = 5000 };

static int rounds;

static int exchange(int* send, int* recv, int count) { return all_to_all(send, recv, count, ++rounds); }

static void* allocate(MPI_Aint bytes, const char* key, const char* value) {
  void* memory = NULL;
  MPI_Info info = MPI_INFO_NULL;
  if (key != NULL) {
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
  }
  const int code = MPI_Alloc_mem(bytes, info, &memory);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  return code == MPI_SUCCESS ? memory : NULL;
}

static MPI_Aint bytes_of(int count) { return (MPI_Aint)sizeof(int) * size * count; }

static int allocated(void) {
  int ok = 1;
  for (int i = 0; i < 5; ++i) {
    int *send = allocate(bytes_of(COUNT), NULL, NULL), *recv = allocate(bytes_of(COUNT), NULL, NULL);
    for (int j = 0; j < 3; ++j) ok &= exchange(send, recv, COUNT - j * 100) && exchange(recv, send, COUNT);
    ok &= MPI_Free_mem(send) == MPI_SUCCESS && MPI_Free_mem(recv) == MPI_SUCCESS;
  }
  return ok;
}

static int infos(void) {
  int ok = 1;
  const char* const keys[] = {"mpi_minimum_memory_alignment", "offpath", "color"};
  const char* const values[] = {"262144", "host", "blue"};
  for (int i = 0; i < 3; ++i) {
    int *send = allocate(bytes_of(COUNT), keys[i], values[i]), *recv = allocate(bytes_of(COUNT), keys[i], values[i]);
    ok &= exchange(send, recv, COUNT);
    MPI_Free_mem(recv);
    MPI_Free_mem(send);
  }
  return ok;
}

/* Messages of the library's own, from and into the same memory, of any length. */
static int lengths(void) {
  int ok = 1;
  for (MPI_Aint bytes = 0; bytes < 40000; bytes = bytes * 3 + 1) {
    unsigned char *from = allocate(bytes, NULL, NULL), *to = allocate(bytes, NULL, NULL);
    for (MPI_Aint i = 0; i < bytes; ++i) from[i] = (unsigned char)(rank + i);
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Sendrecv(from, (int)bytes, MPI_BYTE, next, 1, to, (int)bytes, MPI_BYTE, before, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (MPI_Aint i = 0; i < bytes; ++i) ok &= to[i] == (unsigned char)(before + i);
    MPI_Free_mem(from);
    MPI_Free_mem(to);
  }
  return ok;
}

static int many(void) {
  static int* blocks[MANY];
  int ok = 1;
  for (int i = 0; i < MANY; ++i) {
    blocks[i] = allocate(8192, NULL, NULL);
    ok &= blocks[i] != NULL;
    blocks[i][0] = blocks[i][2047] = i;
  }
  for (int i = 0; i < MANY; ++i) {
    ok &= blocks[i][0] == i && blocks[i][2047] == i;
    MPI_Free_mem(blocks[i]);
  }
  return ok;
}

static int child(void) {
  int *send = allocate(bytes_of(COUNT), NULL, NULL), *recv = allocate(bytes_of(COUNT), NULL, NULL), status = 1;
  int ok = exchange(send, recv, COUNT);
  const int was = recv[5];
  const pid_t process = fork();
  if (process == 0) {
    ok = recv[5] == was;
    memset(recv, 0xEE, (size_t)bytes_of(COUNT));
    _exit(ok ? 0 : 1);
  }
  ok &= waitpid(process, &status, 0) == process && status == 0 && recv[5] == was;
  ok &= exchange(send, recv, COUNT);
  MPI_Free_mem(send);
  MPI_Free_mem(recv);
  return ok;
}

static int has(MPI_Win win, int key, intptr_t expected) {
  int found = 0;
  void* value = NULL;
  MPI_Win_get_attr(win, key, &value, &found);
  if (!found) return 0;
  return key == MPI_WIN_BASE   ? (intptr_t)value == expected
         : key == MPI_WIN_SIZE ? *(MPI_Aint*)value == expected
                               : *(int*)value == (int)expected;
}

static int windows(void) {
  int ok = 1;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  int* origin = allocate(sizeof(int) * COUNT, NULL, NULL);
  for (int round = 0; round < 4; ++round) {
    MPI_Win win;
    int* memory = NULL;
    const MPI_Aint bytes = round == 3 ? 4000 : (MPI_Aint)sizeof(int) * COUNT; /* of rank 0 none in one round */
    const int count = (int)(bytes / (MPI_Aint)sizeof(int)), empty = round == 2 ? 0 : -1;
    const MPI_Aint own = rank == empty ? 0 : bytes;
    MPI_Win_allocate(own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    ok &= has(win, MPI_WIN_CREATE_FLAVOR, MPI_WIN_FLAVOR_ALLOCATE) && has(win, MPI_WIN_SIZE, own);
    ok &= own == 0 || has(win, MPI_WIN_BASE, (intptr_t)memory);
    for (int i = 0; i < count; ++i) origin[i] = value_of(rank, next, i, round);
    MPI_Win_fence(0, win);
    if (next != empty) MPI_Put(origin, count, MPI_INT, next, 0, count, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < count && rank != empty; ++i) ok &= memory[i] == value_of(before, rank, i, round);
    memset(origin, 0, (size_t)bytes);
    if (next != empty) MPI_Get(origin, count, MPI_INT, next, 0, count, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < count && next != empty; ++i) ok &= origin[i] == value_of(rank, next, i, round);
    MPI_Win_free(&win);
  }
  MPI_Free_mem(origin);
  return ok;
}

static void* free_it(void* memory) {
  MPI_Free_mem(memory);
  return NULL;
}

int main(int argc, char** argv) {
  enter_with(&argc, &argv, MPI_THREAD_SERIALIZED);
  if (argc > 1 && strcmp(argv[1], "windows") == 0) {
    report("windows", windows());
    return finish();
  }
  report("allocated", allocated());
  report("infos", infos());
  report("lengths", lengths());
  report("many", many());
  report("windows", windows());
  report("child", child());
  pthread_t other;
  const int started = pthread_create(&other, NULL, &free_it, allocate(100000, NULL, NULL)) == 0;
  report("another thread", started && pthread_join(other, NULL) == 0);
  int *left = allocate(bytes_of(COUNT), NULL, NULL), *other_left = allocate(100000, NULL, NULL);
  report("left", exchange(left, left + 0 * size, 0) && exchange(left, allocate(bytes_of(COUNT), NULL, NULL), COUNT));
  other_left[24999] = 7;
  const int status = finish();
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < COUNT; ++i)
      if (left[p * COUNT + i] != value_of(rank, p, i, rounds)) return 2;
  if (argc > 1 && MPI_Free_mem(left) != MPI_SUCCESS) return 3;
  return other_left[24999] == 7 ? status : 4;
}
