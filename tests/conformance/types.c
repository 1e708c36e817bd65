/* SPDX-License-Identifier: BSD-3-Clause
 * Three families of datatypes: int32 (short ranges, and ranges of 2 KiB and more), records of mixed basic types, bytes.
 * Within a family any type may be sent as one and received as another, if the numbers of items match. */
#include "conformance.h"

#include <string.h>

static Family ints, records, bytes;

static MPI_Aint sum_of_ranges(const Type* type) {
  MPI_Aint sum = 0;
  for (int i = 0; i < type->ranges_count; ++i) sum += type->ranges[i].bytes;
  return sum;
}

static void add(Family* family, const char* name, MPI_Datatype handle, int items, MPI_Aint extent, int ranges_count,
                const Range* ranges) {
  Type* type = &family->types[family->count++];
  *type = (Type){.name = name, .handle = handle, .items = items, .extent = extent, .ranges_count = ranges_count};
  memcpy(type->ranges, ranges, (size_t)ranges_count * sizeof(Range));
  type->bytes = sum_of_ranges(type);
  MPI_Type_commit(&type->handle);
}

static MPI_Datatype resized(MPI_Datatype from, MPI_Aint low, MPI_Aint extent) {
  MPI_Datatype to;
  MPI_Type_create_resized(from, low, extent, &to);
  MPI_Type_free(&from);
  return to;
}

#define RANGES(...) \
  (int)(sizeof((Range[]){__VA_ARGS__}) / sizeof(Range)), (Range[]) { __VA_ARGS__ }

static void create_ints(void) {
  MPI_Datatype t;
  add(&ints, "int", MPI_INT, 1, 4, RANGES({0, 4}));
  MPI_Type_contiguous(12, MPI_INT, &t);
  add(&ints, "contiguous", t, 12, 48, RANGES({0, 48}));
  MPI_Type_vector(4, 3, 5, MPI_INT, &t);
  add(&ints, "vector", t, 12, 72, RANGES({0, 12}, {20, 12}, {40, 12}, {60, 12}));
  MPI_Type_create_hvector(4, 3, -16, MPI_INT, &t); /* the first block lies highest */
  add(&ints, "hvector_down", t, 12, 60, RANGES({0, 12}, {-16, 12}, {-32, 12}, {-48, 12}));
  MPI_Type_indexed(3, (int[]){5, 1, 6}, (int[]){9, 0, 2}, MPI_INT, &t);
  add(&ints, "indexed", t, 12, 56, RANGES({36, 20}, {0, 4}, {8, 24}));
  MPI_Type_create_subarray(2, (int[]){5, 6}, (int[]){4, 3}, (int[]){1, 2}, MPI_ORDER_C, MPI_INT, &t);
  add(&ints, "subarray", t, 12, 120, RANGES({32, 12}, {56, 12}, {80, 12}, {104, 12}));
  MPI_Type_contiguous(12, MPI_INT, &t);
  add(&ints, "resized", resized(t, -8, 72), 12, 72, RANGES({0, 48}));
  MPI_Type_create_struct(2, (int[]){7, 5}, (MPI_Aint[]){-12, 24}, (MPI_Datatype[]){MPI_INT, MPI_INT}, &t);
  add(&ints, "struct_below", t, 12, 56, RANGES({-12, 28}, {24, 20}));
  MPI_Type_vector(3, 512, 600, MPI_INT, &t);
  add(&ints, "long_vector", t, 1536, 6848, RANGES({0, 2048}, {2400, 2048}, {4800, 2048}));
  MPI_Type_indexed(3, (int[]){256, 1024, 256}, (int[]){1500, 0, 1100}, MPI_INT, &t);
  add(&ints, "long_indexed", t, 1536, 7024, RANGES({6000, 1024}, {0, 4096}, {4400, 1024}));
}

static void create_records(void) {
  MPI_Datatype t;
  const MPI_Datatype parts[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR};
  MPI_Type_create_struct(3, (int[]){1, 1, 3}, (MPI_Aint[]){0, 8, 12}, (MPI_Datatype*)parts, &t);
  add(&records, "record", resized(t, 0, 16), 1, 16, RANGES({0, 15}));
  MPI_Type_create_struct(3, (int[]){1, 1, 3}, (MPI_Aint[]){16, -4, 4}, (MPI_Datatype*)parts, &t);
  add(&records, "record_spread", resized(t, -8, 40), 1, 40, RANGES({16, 8}, {-4, 4}, {4, 3}));
}

static void create_bytes(void) {
  MPI_Datatype t;
  add(&bytes, "byte", MPI_BYTE, 1, 1, RANGES({0, 1}));
  MPI_Type_create_hindexed(2, (int[]){1, 6}, (MPI_Aint[]){10, 1}, MPI_BYTE, &t);
  add(&bytes, "byte_indexed", resized(t, 0, 11), 7, 11, RANGES({10, 1}, {1, 6}));
  MPI_Type_vector(2, 701, 777, MPI_BYTE, &t);
  add(&bytes, "byte_long", t, 1402, 1478, RANGES({0, 701}, {777, 701}));
}

/* Every type is sent and received at least once, with itself and with another. */
static const struct {
  const Family* family;
  int send, recv;
} kPairs[] = {
    {&ints, 0, 0},    {&ints, 0, 2},    {&ints, 2, 4},    {&ints, 4, 5},  {&ints, 5, 3},  {&ints, 3, 6},
    {&ints, 6, 7},    {&ints, 7, 1},    {&ints, 1, 0},    {&ints, 8, 0},  {&ints, 0, 9},  {&ints, 9, 8},
    {&records, 0, 0}, {&records, 1, 0}, {&records, 0, 1}, {&bytes, 0, 0}, {&bytes, 1, 0}, {&bytes, 0, 2},
    {&bytes, 2, 1},   {&ints, 8, 8},    {&ints, 2, 2},
};

int type_pairs_count(void) { return sizeof(kPairs) / sizeof(kPairs[0]); }

TypePair type_pair(int index) {
  const Family* family = kPairs[index].family;
  return (TypePair){family, &family->types[kPairs[index].send], &family->types[kPairs[index].recv]};
}

void types_create(void) {
  create_ints();
  create_records();
  create_bytes();
}

int least_common_multiple(int a, int b) {
  int multiple = a;
  while (multiple % b != 0) multiple += a;
  return multiple;
}

static void free_family(Family* family) {
  for (int i = 1; i < family->count; ++i) MPI_Type_free(&family->types[i].handle);
  if (family == &records) MPI_Type_free(&family->types[0].handle); /* elsewhere the first is predefined */
}

void types_free(void) {
  free_family(&ints);
  free_family(&records);
  free_family(&bytes);
}
