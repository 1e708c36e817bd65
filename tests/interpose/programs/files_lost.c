/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Long writes of all ranks to one file, round after round, and reads of what the neighbour has written; somebody kills services
 * meanwhile. "full": the file system has room for a part: says which error class each write ends with. */
#include "world.h"

enum { BYTES = 24 << 20, ROUNDS = 6 };

static void fill(unsigned char* data, int of, int round) {
  for (size_t i = 0; i < BYTES; ++i) data[i] = (unsigned char)(i * 13 + i / 4096 + (size_t)of * 5 + (size_t)round);
}

static int write_and_read(const char* name) {
  unsigned char *out = malloc(BYTES), *in = malloc(BYTES), *wanted = malloc(BYTES);
  MPI_File file;
  MPI_Status status;
  int good = 1, count = 0;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Request request;
    fill(out, rank, round);
    MPI_File_iwrite_at(file, (MPI_Offset)rank * BYTES, out, BYTES, MPI_BYTE, &request);
    if (round == 1 && rank == 0) { /* whoever kills may begin */
      make_file("ready");
    }
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    good = good && count == BYTES;
    MPI_Barrier(MPI_COMM_WORLD);
    const int next = (rank + 1) % size;
    memset(in, 0, BYTES);
    MPI_File_iread_at(file, (MPI_Offset)next * BYTES, in, BYTES, MPI_BYTE, &request);
    fill(wanted, next, round);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    good = good && count == BYTES && memcmp(in, wanted, BYTES) == 0;
    int killed = access("killed", F_OK) == 0;
    MPI_Bcast(&killed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (round == 1 && !killed) round = 0; /* until it was done */
  }
  MPI_File_close(&file);
  free(out), free(in), free(wanted);
  return good;
}

static int fill_it_up(const char* name) {
  unsigned char* out = calloc(1, BYTES);
  MPI_File file;
  MPI_Request request;
  MPI_Status status;
  int class = MPI_SUCCESS, failures = 0, others = 0;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int round = 0; round < ROUNDS; ++round) {
    int code = MPI_File_iwrite_at(file, (MPI_Offset)(round * size + rank) * BYTES, out, BYTES, MPI_BYTE, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, &status);
    if (code == MPI_SUCCESS) continue;
    MPI_Error_class(code, &class);
    ++failures;
    others += class != MPI_ERR_NO_SPACE;
  }
  MPI_File_close(&file);
  free(out);
  return failures > 0 && others == 0;
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  const int full = argc > 2 && strcmp(argv[2], "full") == 0;
  report(full ? "full" : "lost", full ? fill_it_up(argv[1]) : write_and_read(argv[1]));
  return finish();
}
