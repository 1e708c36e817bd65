/* SPDX-License-Identifier: BSD-3-Clause
 * Room for messages comes with use and goes when it is not used: what this process shares with its service, before, at the peak,
 * and a while after it; and then there is room again at once. With a number: messages of so many bytes. */
#define _GNU_SOURCE
#include "world.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>

enum { MANY = 24, BYTES = 512 << 10, LITTLE = 2 << 20, LIMIT_S = 60 };

static unsigned char *out[MANY], *in[MANY];

/* In files that are only in memory. */
static long long held(void) {
  long long bytes = 0;
  DIR* opened = opendir("/proc/self/fd");
  for (struct dirent* entry; opened && (entry = readdir(opened));) {
    char path[300], name[16] = "";
    struct stat status;
    snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
    if (readlink(path, name, sizeof name - 1) < 0 || strncmp(name, "/memfd:", 7)) continue;
    if (stat(path, &status) == 0) bytes += status.st_blocks * 512LL;
  }
  if (opened) closedir(opened);
  return bytes;
}

static void send_all(int round, MPI_Request* sends, int count) {
  for (int k = 0; k < count; ++k) {
    memset(out[k], rank * 64 + k + round, BYTES);
    MPI_Isend(out[k], BYTES, MPI_BYTE, right_of, k, MPI_COMM_WORLD, &sends[k]);
  }
}

static int receive_all(int round, MPI_Request* sends, int count) {
  MPI_Request receives[MANY];
  int ok = 1;
  for (int k = 0; k < count; ++k) MPI_Irecv(in[k], BYTES, MPI_BYTE, left_of, k, MPI_COMM_WORLD, &receives[k]);
  MPI_Waitall(count, receives, MPI_STATUSES_IGNORE);
  MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < BYTES; i += 4095) ok = ok && in[k][i] == (unsigned char)(left_of * 64 + k + round);
  return ok;
}

/* A few at a time, again and again. */
static int halos(int round) {
  MPI_Request sends[6];
  int ok = 1;
  for (int k = 0; k < 8; ++k) {
    send_all(round + k, sends, 6);
    ok = receive_all(round + k, sends, 6) && ok;
  }
  return ok;
}

/* Everything, before the first one is received. */
static int peak(long long before) {
  MPI_Request sends[MANY];
  send_all(100, sends, MANY);
  for (int k = 0; k < MANY; ++k) MPI_Probe(left_of, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const int ok = receive_all(100, sends, MANY);
  const long long most = held();
  fprintf(stderr, "rank %d: %lld bytes before, %lld at the peak\n", rank, before, most);
  return ok && (before == 0 || most > before + (MANY / 2) * (long long)BYTES);
}

/* One that takes nearly all that there is: what was granted before has to go first. */
static int longest(int bytes) {
  unsigned char *sent = malloc(bytes), *received = malloc(bytes);
  int ok = 1;
  for (int round = 0; round < 16; ++round) {
    MPI_Request requests[2];
    memset(sent, rank + round, bytes);
    MPI_Irecv(received, bytes, MPI_BYTE, left_of, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent, bytes, MPI_BYTE, right_of, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < bytes; i += 4095) ok = ok && received[i] == (unsigned char)(left_of + round);
  }
  free(sent);
  free(received);
  return ok;
}

/* The ranks go on, but send nothing long. */
static int goes_down(long long before) {
  const time_t begin = time(NULL);
  int all = 0;
  while (!all && time(NULL) - begin < LIMIT_S) {
    usleep(20000);
    const int ok = held() <= before + LITTLE;
    MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  fprintf(stderr, "rank %d: %lld bytes after\n", rank, held());
  return all;
}

/* Columns of a matrix: pieces that are too short for the service one by one. From columns to a row, and the other way round. */
static int columns(int round) {
  enum { ROWS = BYTES / 64, WIDTH = 128 };
  static unsigned char matrix[ROWS][WIDTH];
  MPI_Datatype part;
  int ok = 1;
  MPI_Type_vector(ROWS, 64, WIDTH, MPI_BYTE, &part);
  MPI_Type_commit(&part);
  for (int k = 0; k < 8; ++k) {
    const int gathers = k % 2 == 0;
    MPI_Request requests[2];
    memset(matrix, 255, sizeof matrix);
    for (int i = 0; i < ROWS; ++i)
      for (int j = 0; gathers && j < 64; ++j) matrix[i][j] = (unsigned char)(i + j + rank + round + k);
    for (int i = 0; i < BYTES; ++i) out[0][i] = (unsigned char)(i / 64 + i % 64 + rank + round + k);
    MPI_Irecv(gathers ? in[0] : matrix[0], gathers ? BYTES : 1, gathers ? MPI_BYTE : part, left_of, k, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Isend(gathers ? matrix[0] : out[0], gathers ? 1 : BYTES, gathers ? part : MPI_BYTE, right_of, k, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < BYTES; ++i) {
      const unsigned char got = gathers ? in[0][i] : matrix[i / 64][i % 64];
      ok = ok && got == (unsigned char)(i / 64 + i % 64 + left_of + round + k);
    }
    for (int i = 0; !gathers && i < ROWS; ++i) ok = ok && matrix[i][64] == 255 && matrix[i][WIDTH - 1] == 255;
  }
  MPI_Type_free(&part);
  return ok;
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  if (argc > 1) {
    report("nearly all", longest(atoi(argv[1])));
    return finish();
  }
  for (int k = 0; k < MANY; ++k) {
    out[k] = malloc(BYTES);
    in[k] = malloc(BYTES);
  }
  const long long before = held();
  report("a few at a time", halos(0));
  report("columns", columns(0));
  report("many at a time", peak(before));
  report("given back", goes_down(before));
  report("again", halos(10));
  return finish();
}
