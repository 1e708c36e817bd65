/* SPDX-License-Identifier: BSD-3-Clause
 * Every type constructor, of short pieces (packed) and long ones (taken from where they lie), as send type and as
 * receive type: what arrives is what MPI_Pack makes of it, and gaps stay as they are. */
#include "world.h"

enum { SPAN = 400000, HALF = SPAN / 2 }; /* bytes of a buffer; elements begin in the middle */

static MPI_Comm comm;

static void fill(char* buffer, int who, int salt) {
  for (int i = 0; i < SPAN; ++i) buffer[i] = (char)(value_of(who, i % 11, i, salt) >> 3);
}

static int packed(const char* buffer, int count, MPI_Datatype type, char* out) {
  int position = 0;
  MPI_Pack(buffer + HALF, count, type, out, SPAN, &position, MPI_COMM_SELF);
  return position;
}

static int sends(int count, MPI_Datatype type) {
  int bytes, ok = 1;
  MPI_Type_size(type, &bytes);
  bytes *= count;
  char *mine = malloc(SPAN), *theirs = malloc(SPAN), *expected = malloc(SPAN);
  char* got = malloc((size_t)(bytes * size) + 1);
  MPI_Request request;
  fill(mine, rank, 1);
  MPI_Iallgather(mine + HALF, count, type, got, bytes, MPI_BYTE, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int p = 0; p < size; ++p) {
    fill(theirs, p, 1);
    ok &= packed(theirs, count, type, expected) == bytes && memcmp(got + p * bytes, expected, (size_t)bytes) == 0;
  }
  free(mine), free(theirs), free(expected), free(got);
  return ok;
}

static int receives(int count, MPI_Datatype type) {
  int bytes, ok = 1, position = 0;
  MPI_Type_size(type, &bytes);
  bytes *= count;
  char *got = malloc(SPAN), *expected = malloc(SPAN), *data = malloc((size_t)bytes + 1);
  MPI_Request request;
  for (int i = 0; i < bytes; ++i) data[i] = (char)(i * 7 + i / 256);
  fill(got, rank, 2);
  fill(expected, rank, 2);
  MPI_Unpack(data, bytes, &position, expected + HALF, count, type, MPI_COMM_SELF);
  if (rank == 0) memcpy(got, expected, SPAN);
  if (rank == 0)
    MPI_Ibcast(data, bytes, MPI_BYTE, 0, comm, &request);
  else
    MPI_Ibcast(got + HALF, count, type, 0, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  ok &= memcmp(got, expected, SPAN) == 0;
  free(got), free(expected), free(data);
  return ok;
}

static void check_type(const char* name, int unit, MPI_Datatype type) {
  char label[80];
  MPI_Type_commit(&type);
  snprintf(label, sizeof(label), "%s of %d bytes", name, unit);
  report(label, sends(1, type) && sends(3, type) && receives(1, type) && receives(3, type));
  MPI_Type_free(&type);
}

static void constructors(int unit) {
  MPI_Datatype piece, other, made, parts[3];
  int lengths[3] = {2, 0, 3}, places[3] = {7, 1, 2}, shape[3] = {4, 3, 5}, part[3] = {2, 2, 3}, from[3] = {1, 0, 2};
  MPI_Aint apart[3] = {9 * unit, 0, -4 * unit};
  MPI_Type_contiguous(unit, MPI_BYTE, &piece);
  MPI_Type_dup(piece, &made);
  check_type("dup", unit, made);
  MPI_Type_contiguous(5, piece, &made);
  check_type("contiguous", unit, made);
  MPI_Type_vector(4, 2, 3, piece, &made);
  check_type("vector", unit, made);
  MPI_Type_vector(3, 1, -2, piece, &made);
  check_type("vector downwards", unit, made);
  MPI_Type_vector(3, 2, 2, piece, &made);
  check_type("vector without gaps", unit, made);
  MPI_Type_create_hvector(3, 2, 2 * unit + 24, piece, &made);
  check_type("hvector", unit, made);
  MPI_Type_indexed(3, lengths, places, piece, &made);
  check_type("indexed", unit, made);
  MPI_Type_create_hindexed(3, lengths, apart, piece, &made);
  check_type("hindexed", unit, made);
  MPI_Type_create_indexed_block(3, 1, places, piece, &made);
  check_type("indexed_block", unit, made);
  MPI_Type_create_hindexed_block(3, 1, apart, piece, &made);
  check_type("hindexed_block", unit, made);
  MPI_Type_vector(2, 1, 2, piece, &other);
  parts[0] = piece, parts[1] = MPI_INT, parts[2] = other;
  MPI_Type_create_struct(3, lengths, apart, parts, &made);
  check_type("struct", unit, made);
  MPI_Type_create_subarray(3, shape, part, from, MPI_ORDER_C, piece, &made);
  check_type("subarray, C", unit, made);
  MPI_Type_create_subarray(3, shape, part, from, MPI_ORDER_FORTRAN, piece, &made);
  check_type("subarray, Fortran", unit, made);
  MPI_Type_create_resized(other, -unit, 5 * unit, &made);
  check_type("resized", unit, made);
  MPI_Type_free(&other);
  MPI_Type_create_resized(piece, 0, 2 * unit, &other);
  MPI_Type_create_hvector(2, 3, 7 * unit, other, &made);
  check_type("hvector of resized", unit, made);
  int spread[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, chunk[2] = {2, MPI_DISTRIBUTE_DFLT_DARG};
  int processes[2] = {2, 2}, extent[2] = {9, 5};
  for (int place = 0; place < 4; ++place) {
    MPI_Type_create_darray(4, place, 2, extent, spread, chunk, processes, MPI_ORDER_C, piece, &made);
    check_type("darray, C", unit, made);
    MPI_Type_create_darray(4, place, 2, extent, spread, chunk, processes, MPI_ORDER_FORTRAN, piece, &made);
    check_type("darray, Fortran", unit, made);
  }
  MPI_Type_free(&other);
  MPI_Type_free(&piece);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  constructors(4);
  constructors(1000);
  MPI_Comm_free(&comm);
  return finish();
}
