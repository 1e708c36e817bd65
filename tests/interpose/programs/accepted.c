/* SPDX-License-Identifier: BSD-3-Clause
 * Operators on types beyond the standard's table, as far as the library at hand does them: one line a call, which says
 * the result on rank 1 of 2, to which rank 0 does what it does to rank 0. */
#include "world.h"

enum { ROOM = 64, FIRST = 0x83, SECOND = 0x05 }; /* of different signs, both odd */
enum {
  SUM = 1,
  PROD = 2,
  MIN = 4,
  MAX = 8,
  BITS = 16 | 32 | 64,
  LOGIC = 128 | 256 | 512,
  LXOR = 512,
  ALL = SUM | PROD | MIN | MAX | BITS | LOGIC
};

static unsigned char* memory;
static MPI_Win win;

static void show(const char* type, const char* op, const char* call, int code, const unsigned char* at, int bytes) {
  if (rank != 1) return;
  printf("%s %s %s: %s", call, op, type, class_name(code));
  for (int i = 0; i < bytes; ++i) printf(" %02x", at[i]);
  printf("\n");
}

static void start_over(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  memset(memory, FIRST, ROOM);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, win);
}

static void accumulate(const char* name, MPI_Datatype type, const char* op_name, MPI_Op op) {
  unsigned char value[ROOM], result[ROOM] = {0};
  int bytes;
  MPI_Type_size(type, &bytes);
  memset(value, SECOND, sizeof(value));
  start_over();
  int code = MPI_Accumulate(value, 1, type, 1 - rank, 0, 1, type, op, win);
  MPI_Win_unlock(1 - rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  show(name, op_name, "accumulate", code, memory, bytes);
  start_over();
  code = MPI_Get_accumulate(value, 1, type, result, 1, type, 1 - rank, 0, 1, type, op, win);
  MPI_Win_unlock(1 - rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  show(name, op_name, "get_accumulate", code, memory, bytes);
  show(name, op_name, "which got", code, result, bytes);
  start_over();
  code = MPI_Fetch_and_op(value, result, type, 1 - rank, 0, op, win);
  MPI_Win_unlock(1 - rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  show(name, op_name, "fetch_and_op", code, memory, bytes);
}

static void swap(const char* name, MPI_Datatype type) {
  unsigned char value[ROOM], compare[ROOM], result[ROOM] = {0};
  int bytes;
  MPI_Type_size(type, &bytes);
  memset(value, SECOND, sizeof(value));
  for (int equal = 0; equal < 2; ++equal) {
    memset(compare, equal ? FIRST : FIRST + 1, sizeof(compare));
    start_over();
    const int code = MPI_Compare_and_swap(value, compare, result, type, 1 - rank, 0, win);
    MPI_Win_unlock(1 - rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    show(name, equal ? "equal" : "different", "compare_and_swap", code, memory, bytes);
    show(name, equal ? "equal" : "different", "which got", code, result, bytes);
  }
}

static void reduce(const char* name, MPI_Datatype type, const char* op_name, MPI_Op op) {
  unsigned char mine[2 * ROOM], result[ROOM];
  const int counts[2] = {1, 1};
  int bytes;
  MPI_Type_size(type, &bytes);
  memset(mine, rank == 0 ? FIRST : SECOND, sizeof(mine));
  MPI_Request request;
#define DO(what, ...)                                             \
  memset(result, 0, sizeof(result));                              \
  code = __VA_ARGS__;                                             \
  if (code == MPI_SUCCESS) MPI_Wait(&request, MPI_STATUS_IGNORE); \
  show(name, op_name, what, code, result, bytes)
  int code;
  DO("reduce", MPI_Ireduce(mine, result, 1, type, op, 1, MPI_COMM_WORLD, &request));
  DO("allreduce", MPI_Iallreduce(mine, result, 1, type, op, MPI_COMM_WORLD, &request));
  DO("scan", MPI_Iscan(mine, result, 1, type, op, MPI_COMM_WORLD, &request));
  DO("exscan", MPI_Iexscan(mine, result, 1, type, op, MPI_COMM_WORLD, &request));
  DO("reduce_scatter", MPI_Ireduce_scatter(mine, result, counts, type, op, MPI_COMM_WORLD, &request));
  DO("reduce_scatter_block", MPI_Ireduce_scatter_block(mine, result, 1, type, op, MPI_COMM_WORLD, &request));
}

static void type(const char* name, MPI_Datatype handle, int reduced, int accumulated) {
  const char* const names[] = {"sum", "prod", "min", "max", "band", "bor", "bxor", "land", "lor", "lxor"};
  const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
  if (handle == MPI_DATATYPE_NULL) return;
  for (int o = 0; o < 10; ++o) {
    if (reduced >> o & 1) reduce(name, handle, names[o], ops[o]);
    if (accumulated >> o & 1) accumulate(name, handle, names[o], ops[o]);
  }
}

#define TYPE(name, reduced, accumulated) type(#name, MPI_##name, reduced, accumulated)
#define SWAP(name) swap(#name, MPI_##name)

/* Of no elements there is nothing that could not be combined. */
static void nothing(void) {
  long value = 7, result = 8;
  (void)result;
  MPI_Datatype empty;
  MPI_Type_contiguous(0, MPI_DOUBLE, &empty);
  MPI_Type_commit(&empty);
  start_over();
  int code = MPI_Accumulate(&value, 1, empty, 1 - rank, 0, 1, empty, MPI_SUM, win);
  show("empty", "sum", "accumulate of nothing", code, NULL, 0);
#ifndef OPEN_MPI /* wants the same type all the same */
  code = MPI_Accumulate(&value, 0, MPI_LONG, 1 - rank, 0, 0, MPI_INT, MPI_SUM, win);
  show("mixed", "sum", "accumulate of nothing", code, NULL, 0);
  code = MPI_Get_accumulate(&value, 0, MPI_LONG, &result, 0, MPI_BYTE, 1 - rank, 0, 0, MPI_INT, MPI_SUM, win);
  show("mixed", "sum", "get_accumulate of nothing", code, NULL, 0);
#endif
  MPI_Win_unlock(1 - rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  show("any", "any", "after nothing", MPI_SUCCESS, memory, 8);
  MPI_Type_free(&empty);
}

static void larger(void* in, void* inout, int* count, MPI_Datatype* of) {
  (void)of;
  for (int i = 0; i < *count; ++i)
    if (((char*)in)[i] > ((char*)inout)[i]) ((char*)inout)[i] = ((char*)in)[i];
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  TYPE(CHAR, ALL, ALL);
  TYPE(CHARACTER, ALL, ALL);
  TYPE(INTEGER8, LOGIC, LOGIC);
  TYPE(AINT, LOGIC, LOGIC);
  TYPE(OFFSET, LOGIC, LOGIC);
  TYPE(COUNT, LOGIC, LOGIC);
  SWAP(CHAR);
  SWAP(CHARACTER);
#ifdef OPEN_MPI
  TYPE(BYTE, ALL, ALL);
  TYPE(LOGICAL1, ALL, ALL);
  TYPE(LOGICAL2, ALL, ALL);
  TYPE(LOGICAL8, ALL, ALL);
  SWAP(FLOAT);
  SWAP(WCHAR);
  SWAP(2INT);
  SWAP(C_DOUBLE_COMPLEX);
  SWAP(C_LONG_DOUBLE_COMPLEX);
#else
  TYPE(BYTE, BITS, ALL);
  TYPE(PACKED, 0, ALL);
  TYPE(C_BOOL, LOGIC, ALL);
  TYPE(LOGICAL, LOGIC, ALL);
  TYPE(INTEGER, LOGIC, LOGIC);
  TYPE(FLOAT, LXOR, LXOR);
  TYPE(DOUBLE, LXOR, LXOR);
#endif
  nothing();
  MPI_Op op;
  MPI_Op_create(larger, 1, &op);
  unsigned char mine = (unsigned char)(rank + 1), most = 0;
  MPI_Request request;
  MPI_Iallreduce(&mine, &most, 1, MPI_CHAR, op, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  show("CHAR", "own", "allreduce", MPI_SUCCESS, &most, 1);
  MPI_Op_free(&op);
  MPI_Win_free(&win);
  return finish();
}
