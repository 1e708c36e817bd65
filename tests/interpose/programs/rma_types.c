/* SPDX-License-Identifier: BSD-3-Clause
 * One-sided communication of every predefined datatype and of derived ones, on both sides. What is expected is computed
 * in this process by MPI_Pack, MPI_Unpack and MPI_Reduce_local. */
#include "world.h"

enum { INTS = 1200, ROOM = 64 * 1024, ORIGIN = 20 * 1024, TYPES = 14, LARGE = 10, WIDE = 600 };

static int next;
static char *memory, *copy, *local, *result, *packed, *packed_too;
static MPI_Win win;
static struct {
  const char* name;
  MPI_Datatype type;
  int ints; /* in one element */
} types[TYPES + LARGE];

static void fill(char* at, int salt) {
  int* ints = (int*)(void*)at;
  for (int i = 0; i < ROOM / (int)sizeof(int); ++i) ints[i] = i * 7 + salt;
}

static void add(int k, const char* name, MPI_Datatype type, int ints) {
  MPI_Type_commit(&type);
  types[k].name = name;
  types[k].type = type;
  types[k].ints = ints;
}

static void make_types(void) {
  int lengths[WIDE], places[WIDE];
  MPI_Aint bytes[3] = {40, 0, 20};
  MPI_Datatype type, nested, members[3] = {MPI_INT, MPI_INT, MPI_INT};
  MPI_Type_contiguous(4, MPI_INT, &type);
  add(0, "contiguous", type, 4);
  MPI_Type_vector(10, 1, 3, MPI_INT, &type);
  add(1, "vector", type, 10);
  MPI_Type_vector(3, 200, 210, MPI_INT, &type);
  add(2, "long vector", type, 600);
  for (int i = 0; i < WIDE; ++i) lengths[i] = 1 + i % 3, places[i] = 4 * i + i % 2;
  MPI_Type_indexed(30, lengths, places, MPI_INT, &type);
  add(3, "indexed", type, 60);
  MPI_Type_indexed(WIDE, lengths, places, MPI_INT, &type);
  add(4, "many ranges", type, 1200);
  MPI_Type_vector(1200, 1, 2, MPI_INT, &type);
  add(5, "many even ranges", type, 1200);
  for (int i = 0; i < 3; ++i) lengths[i] = 1 << i;
  lengths[2] = 3;
  MPI_Type_create_struct(3, lengths, bytes, members, &type);
  add(6, "struct, turned", type, 6);
  const int sizes[2] = {8, 10}, subsizes[2] = {4, 5}, starts[2] = {2, 3};
  MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
  add(7, "subarray", type, 20);
  MPI_Type_create_hvector(4, 1, -40, MPI_INT, &type);
  add(8, "backwards", type, 4);
  MPI_Type_vector(2, 2, 3, MPI_INT, &nested);
  MPI_Type_create_resized(nested, 0, 40, &type);
  MPI_Type_free(&nested);
  add(9, "resized", type, 4);
  MPI_Type_vector(5, 1, 2, types[9].type, &type);
  add(10, "nested", type, 20);
  MPI_Type_contiguous(INTS, MPI_INT, &type);
  add(11, "one", type, INTS);
  const int extents[2] = {8, 12}, spread[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
  const int chunks[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 2};
  MPI_Type_create_darray(4, 1, 2, extents, spread, chunks, grid, MPI_ORDER_C, MPI_INT, &type);
  add(12, "darray, C", type, 24);
  const int extents_too[3] = {6, 5, 4}, grid_too[3] = {2, 1, 2};
  const int spread_too[3] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK};
  const int chunks_too[3] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG, 3};
  MPI_Type_create_darray(4, 1, 3, extents_too, spread_too, chunks_too, grid_too, MPI_ORDER_FORTRAN, MPI_INT, &type);
  add(13, "darray, Fortran", type, 15);
}

/* The same, made by the functions with large counts: how many. */
static int make_large_types(void) {
#ifdef OFFPATH_MPI_HAS_LARGE_COUNTS
  MPI_Count lengths[WIDE], places[WIDE];
  MPI_Datatype type, nested, members[3] = {MPI_INT, MPI_INT, MPI_INT};
  MPI_Type_contiguous_c(4, MPI_INT, &type);
  add(TYPES, "contiguous, large counts", type, 4);
  MPI_Type_vector_c(3, 200, 210, MPI_INT, &type);
  add(TYPES + 1, "vector, large counts", type, 600);
  for (int i = 0; i < WIDE; ++i) lengths[i] = 1 + i % 3, places[i] = 4 * i + i % 2;
  MPI_Type_indexed_c(30, lengths, places, MPI_INT, &type);
  add(TYPES + 2, "indexed, large counts", type, 60);
  MPI_Type_create_indexed_block_c(30, 2, places, MPI_INT, &type);
  add(TYPES + 3, "blocks, large counts", type, 60);
  const MPI_Count bytes[3] = {40, 0, 20}, members_lengths[3] = {1, 2, 3};
  MPI_Type_create_struct_c(3, members_lengths, bytes, members, &type);
  add(TYPES + 4, "struct, large counts", type, 6);
  MPI_Type_create_hindexed_c(3, members_lengths, bytes, MPI_INT, &type);
  add(TYPES + 5, "indexed by bytes, large counts", type, 6);
  MPI_Type_create_hindexed_block_c(3, 2, bytes, MPI_INT, &type);
  add(TYPES + 6, "blocks by bytes, large counts", type, 6);
  const MPI_Count sizes[2] = {8, 10}, subsizes[2] = {4, 5}, starts[2] = {2, 3};
  MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
  add(TYPES + 7, "subarray, large counts", type, 20);
  MPI_Type_vector(2, 2, 3, MPI_INT, &nested);
  MPI_Type_create_resized_c(nested, 0, 40, &type);
  MPI_Type_free(&nested);
  nested = type;
  MPI_Type_create_hvector_c(3, 2, 96, nested, &type);
  MPI_Type_free(&nested);
  add(TYPES + 8, "nested, large counts", type, 24);
  const MPI_Count extents[2] = {8, 12};
  const int spread[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
  const int chunks[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 2};
  MPI_Type_create_darray_c(4, 1, 2, extents, spread, chunks, grid, MPI_ORDER_C, MPI_INT, &type);
  add(TYPES + 9, "darray, large counts", type, 24);
  return LARGE;
#else
  return 0;
#endif
}

static int packed_bytes(const char* from, int count, MPI_Datatype type, char* to) {
  int position = 0;
  MPI_Pack(from, count, type, to, ROOM, &position, MPI_COMM_WORLD);
  return position;
}

static void unpacked(char* to, int count, MPI_Datatype type, const char* from, int bytes) {
  int position = 0;
  MPI_Unpack(from, bytes, &position, to, count, type, MPI_COMM_WORLD);
}

/* What this rank does to its neighbour, the other neighbour does here, with the same data. */
static int same_memory(void) { return memcmp(memory, copy, ROOM) == 0; }

static void start_over(int salt) {
  MPI_Barrier(MPI_COMM_WORLD);
  fill(memory, salt + rank);
  fill(copy, salt + rank);
  fill(local, 5 * salt);
  fill(result, -salt);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
}

static void finish_epoch(void) {
  MPI_Win_unlock(next, win);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void pair(int o, int t) {
  const MPI_Datatype origin = types[o].type, target = types[t].type;
  const int co = INTS / types[o].ints, ct = INTS / types[t].ints;
  const MPI_Aint at = 4096; /* some reach back */
  char* const from = local + ORIGIN;
  char* const to = result + ORIGIN;
  int ok = 1;
  char text[100];

  start_over(11);
  MPI_Put(from, co, origin, next, at, ct, target, win);
  finish_epoch();
  int bytes = packed_bytes(from, co, origin, packed);
  unpacked(copy + at, ct, target, packed, bytes);
  ok &= same_memory();

  start_over(13);
  MPI_Get(to, co, origin, next, at, ct, target, win);
  MPI_Win_flush(next, win);
  packed_bytes(to, co, origin, packed);
  fill(copy, 13 + next);
  packed_bytes(copy + at, ct, target, packed_too);
  ok &= memcmp(packed, packed_too, (size_t)bytes) == 0;
  finish_epoch();

  start_over(17);
  MPI_Accumulate(from, co, origin, next, at, ct, target, MPI_SUM, win);
  finish_epoch();
  packed_bytes(from, co, origin, packed);
  packed_bytes(copy + at, ct, target, packed_too);
  MPI_Reduce_local(packed, packed_too, INTS, MPI_INT, MPI_SUM);
  unpacked(copy + at, ct, target, packed_too, bytes);
  ok &= same_memory();

  start_over(19);
  MPI_Request request;
  MPI_Rget_accumulate(from, co, origin, to, ct, target, next, at, ct, target, MPI_REPLACE, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  finish_epoch();
  packed_bytes(to, ct, target, packed_too);
  fill(result, 19 + next);
  packed_bytes(result + at, ct, target, packed);
  ok &= memcmp(packed, packed_too, (size_t)bytes) == 0;
  packed_bytes(from, co, origin, packed);
  unpacked(copy + at, ct, target, packed, bytes);
  ok &= same_memory();
  snprintf(text, sizeof(text), "%s to %s", types[o].name, types[t].name);
  report(text, ok);
}

/* Who receives has room for more than comes: perhaps for the rest of an element, too. */
static int fewer(int o, int t) {
  const MPI_Datatype origin = types[o].type, target = types[t].type;
  const int co = INTS / types[o].ints, ct = INTS / types[t].ints;
  const int few = (co + 1) / 2, few_there = (ct + 1) / 2;
  const MPI_Aint at = 4096;
  char *const from = local + ORIGIN, *const to = result + ORIGIN;
  int ok = 1;

  for (int sums = 0; sums < 2; ++sums) {
    start_over(31);
    if (sums)
      MPI_Accumulate(from, few, origin, next, at, ct, target, MPI_SUM, win);
    else
      MPI_Put(from, few, origin, next, at, ct, target, win);
    finish_epoch();
    const int bytes = packed_bytes(from, few, origin, packed);
    const int all = packed_bytes(copy + at, ct, target, packed_too);
    if (sums)
      MPI_Reduce_local(packed, packed_too, bytes / (int)sizeof(int), MPI_INT, MPI_SUM);
    else
      memcpy(packed_too, packed, (size_t)bytes);
    unpacked(copy + at, ct, target, packed_too, all);
    ok &= same_memory();
  }

  for (int requested = 0; requested < 2; ++requested) {
    MPI_Request request = MPI_REQUEST_NULL;
    start_over(37);
    if (requested)
      MPI_Rget(to, co, origin, next, at, few_there, target, win, &request);
    else
      MPI_Get(to, co, origin, next, at, few_there, target, win);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    finish_epoch();
    fill(copy, 37 + next);
    const int bytes = packed_bytes(copy + at, few_there, target, packed);
    fill(copy, -37);
    const int all = packed_bytes(copy + ORIGIN, co, origin, packed_too);
    memcpy(packed_too, packed, (size_t)bytes);
    unpacked(copy + ORIGIN, co, origin, packed_too, all);
    ok &= memcmp(result, copy, ROOM) == 0;
  }
  return ok;
}

/* Put, get and an operator that the type allows. */
static void predefined(const char* name, MPI_Datatype type, MPI_Op op) {
  enum { COUNT = 5 };
  MPI_Aint lower, extent;
  int ok = 1;
  MPI_Type_get_extent(type, &lower, &extent);
  const size_t bytes = COUNT * (size_t)extent;
  for (int step = 0; step < 3; ++step) {
    start_over(3);
    /* Values that are numbers in every type. */
    memset(local, 0, 1024), memset(memory, 0, 1024), memset(copy, 0, 1024), memset(result, 0, 1024);
    for (size_t i = 0; i < bytes; i += 4) local[i] = 1, copy[i] = memory[i] = 2;
    MPI_Barrier(MPI_COMM_WORLD);
    if (step == 0) MPI_Put(local, COUNT, type, next, 0, COUNT, type, win);
    if (step == 1) MPI_Get(result, COUNT, type, next, 0, COUNT, type, win);
    if (step == 2 && op != MPI_OP_NULL) MPI_Accumulate(local, COUNT, type, next, 0, COUNT, type, op, win);
    finish_epoch();
    if (step == 0)
      MPI_Sendrecv(local, COUNT, type, rank, 0, copy, COUNT, type, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (step == 1) {
      memset(local, 0, 1024);
      MPI_Sendrecv(memory, COUNT, type, rank, 0, local, COUNT, type, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      packed_bytes(local, COUNT, type, packed);
      ok &= memcmp(packed, packed_too, (size_t)packed_bytes(result, COUNT, type, packed_too)) == 0;
    }
    if (step == 2 && op != MPI_OP_NULL) MPI_Reduce_local(local, copy, COUNT, type, op);
    packed_bytes(memory, COUNT, type, packed);
    ok &= memcmp(packed, packed_too, (size_t)packed_bytes(copy, COUNT, type, packed_too)) == 0;
  }
  report(name, ok);
}

#define PREDEFINED(type, op) predefined(#type, type, op)

static void bottom(void) {
  MPI_Datatype type;
  MPI_Aint address;
  const int length = 6;
  start_over(23);
  MPI_Get_address(local, &address);
  MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Put(MPI_BOTTOM, 1, type, next, 64, 6, MPI_INT, win);
  MPI_Type_free(&type);
  finish_epoch();
  memcpy(copy + 64, local, 6 * sizeof(int));
  report("absolute addresses", same_memory());
}

/* Pairs with a gap, in a derived type; the window's units are bytes. */
static void pairs(void) {
  struct {
    double value;
    int index;
  } own[8], there[16], expected[16];
  MPI_Datatype type;
  MPI_Type_vector(4, 1, 2, MPI_DOUBLE_INT, &type);
  MPI_Type_commit(&type);
  memset(own, 0, sizeof(own)), memset(there, 0, sizeof(there)), memset(expected, 0, sizeof(expected));
  start_over(29);
  for (int i = 0; i < 8; ++i) own[i].value = i * 2, own[i].index = i;
  for (int i = 0; i < 16; ++i) there[i].value = expected[i].value = 5, there[i].index = expected[i].index = 100;
  memcpy(memory, there, sizeof(there));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Accumulate(own, 4, MPI_DOUBLE_INT, next, 0, 1, type, MPI_MAXLOC, win);
  MPI_Accumulate(own, 2, type, next, 8 * sizeof(own[0]), 8, MPI_DOUBLE_INT, MPI_MINLOC, win);
  finish_epoch();
  memcpy(there, memory, sizeof(there));
  for (int i = 0; i < 4; ++i)
    if (own[i].value > 5) expected[2 * i] = own[i];
  for (int i = 0; i < 4; ++i)
    if (own[2 * i].value < 5) expected[8 + i] = own[2 * i];
  int ok = 1;
  for (int i = 0; i < 12; ++i) ok &= there[i].value == expected[i].value && there[i].index == expected[i].index;
  report("pairs in a vector", ok);
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  next = (rank + 1) % size;
  copy = malloc(ROOM), local = malloc(ROOM), result = malloc(ROOM), packed = malloc(ROOM), packed_too = malloc(ROOM);
  MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  make_types();
  for (int o = 0; o < TYPES; ++o)
    for (int t = 0; t < TYPES; ++t) pair(o, t);
  for (int o = 0; o < TYPES; ++o) {
    int ok = 1;
    char text[100];
    for (int t = 0; t < TYPES; ++t) ok &= fewer(o, t);
    snprintf(text, sizeof(text), "%s to room for more", types[o].name);
    report(text, ok);
  }
  const int large = make_large_types();
  for (int k = TYPES; k < TYPES + large; ++k) pair(k, 1), pair(11, k);
  PREDEFINED(MPI_CHAR, MPI_OP_NULL);
  PREDEFINED(MPI_SIGNED_CHAR, MPI_MAX);
  PREDEFINED(MPI_UNSIGNED_CHAR, MPI_BOR);
  PREDEFINED(MPI_BYTE, MPI_BXOR);
  PREDEFINED(MPI_WCHAR, MPI_OP_NULL);
  PREDEFINED(MPI_SHORT, MPI_SUM);
  PREDEFINED(MPI_UNSIGNED_SHORT, MPI_MAX);
  PREDEFINED(MPI_INT, MPI_PROD);
  PREDEFINED(MPI_UNSIGNED, MPI_LAND);
  PREDEFINED(MPI_LONG, MPI_MIN);
  PREDEFINED(MPI_UNSIGNED_LONG, MPI_BAND);
  PREDEFINED(MPI_LONG_LONG, MPI_LXOR);
  PREDEFINED(MPI_INT8_T, MPI_MIN);
  PREDEFINED(MPI_UINT64_T, MPI_SUM);
  PREDEFINED(MPI_C_BOOL, MPI_OP_NULL);
  PREDEFINED(MPI_AINT, MPI_SUM);
  PREDEFINED(MPI_OFFSET, MPI_MAX);
  PREDEFINED(MPI_COUNT, MPI_MIN);
  PREDEFINED(MPI_FLOAT, MPI_SUM);
  PREDEFINED(MPI_DOUBLE, MPI_MAX);
  PREDEFINED(MPI_C_FLOAT_COMPLEX, MPI_SUM);
  PREDEFINED(MPI_C_DOUBLE_COMPLEX, MPI_PROD);
  PREDEFINED(MPI_INTEGER, MPI_SUM);
  PREDEFINED(MPI_LOGICAL, MPI_OP_NULL);
  PREDEFINED(MPI_DOUBLE_PRECISION, MPI_MIN);
  PREDEFINED(MPI_FLOAT_INT, MPI_MINLOC);
  PREDEFINED(MPI_DOUBLE_INT, MPI_MAXLOC);
  PREDEFINED(MPI_LONG_INT, MPI_MAXLOC);
  PREDEFINED(MPI_2INT, MPI_MINLOC);
  PREDEFINED(MPI_SHORT_INT, MPI_MAXLOC);
  bottom();
  pairs();
  for (int k = 0; k < TYPES + large; ++k) MPI_Type_free(&types[k].type);
  MPI_Win_free(&win);
  free(copy), free(local), free(result), free(packed), free(packed_too);
  return finish();
}
