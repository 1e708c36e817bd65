/* SPDX-License-Identifier: BSD-3-Clause
 * What is wrong with one-sided calls: the error class and how often the window's error handler was called, one line a
 * case, on rank 0 of 2. With an argument: what only Offpath notices; or the name of a call, which fails and ends it. */
#include "world.h"

static int handler_calls;
static MPI_Win win;
static long memory[16], value[4], result[4], compare;

static void handler(MPI_Win* which, int* code, ...) {
  (void)which;
  (void)code;
  ++handler_calls;
}

static void show(const char* what, int code) {
  if (rank == 0) printf("%s: %s, handler calls %d\n", what, class_name(code), handler_calls);
  fflush(stdout);
  handler_calls = 0;
}

#define SHOW(call) show(#call, call)

typedef struct Put {
  int count, target, target_count;
  MPI_Aint displacement;
  MPI_Datatype type, target_type;
  MPI_Op op;
} Put;

static void each(const char* what, const Put* p) {
  char text[120];
  snprintf(text, sizeof(text), "put, %s", what);
  show(text, MPI_Put(value, p->count, p->type, p->target, p->displacement, p->target_count, p->target_type, win));
  snprintf(text, sizeof(text), "get, %s", what);
  show(text, MPI_Get(result, p->count, p->type, p->target, p->displacement, p->target_count, p->target_type, win));
  snprintf(text, sizeof(text), "accumulate, %s", what);
  show(text, MPI_Accumulate(value, p->count, p->type, p->target, p->displacement, p->target_count, p->target_type,
                            p->op, win));
  snprintf(text, sizeof(text), "get_accumulate, %s", what);
  show(text, MPI_Get_accumulate(value, p->count, p->type, result, p->count, p->type, p->target, p->displacement,
                                p->target_count, p->target_type, p->op, win));
}

static void arguments(void) {
  const Put right = {1, 1, 1, 0, MPI_LONG, MPI_LONG, MPI_SUM};
  MPI_Datatype uncommitted;
  MPI_Type_contiguous(1, MPI_LONG, &uncommitted);
  Put p = right;
  each("nothing wrong", &p);
  p.count = -1, each("negative origin count", &p);
  p = right, p.target_count = -1, each("negative target count", &p);
  p = right, p.target = 2, each("rank too high", &p);
  p = right, p.target = -7, each("negative rank", &p);
  p = right, p.target = MPI_PROC_NULL, each("no process", &p);
  p = right, p.displacement = -1, each("negative displacement", &p);
  p = right, p.type = MPI_DATATYPE_NULL, each("null origin type", &p);
  p = right, p.target_type = MPI_DATATYPE_NULL, each("null target type", &p);
  p = right, p.type = uncommitted, each("uncommitted origin type", &p);
  p = right, p.target_type = uncommitted, each("uncommitted target type", &p);
  MPI_Type_free(&uncommitted);
  show("accumulate, null operator", MPI_Accumulate(value, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_OP_NULL, win));
  show("get_accumulate, null operator",
       MPI_Get_accumulate(value, 1, MPI_LONG, result, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_OP_NULL, win));
#ifdef OPEN_MPI /* MPICH does it */
  show("accumulate, bits of floating point", MPI_Accumulate(value, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, MPI_BAND, win));
  show("accumulate, place of no pair", MPI_Accumulate(value, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_MINLOC, win));
#endif
  show("fetch_and_op, rank too high", MPI_Fetch_and_op(value, result, MPI_LONG, 2, 0, MPI_SUM, win));
  show("fetch_and_op, null type", MPI_Fetch_and_op(value, result, MPI_DATATYPE_NULL, 1, 0, MPI_SUM, win));
#ifndef OPEN_MPI /* crashes at the target */
  show("fetch_and_op, null operator", MPI_Fetch_and_op(value, result, MPI_LONG, 1, 0, MPI_OP_NULL, win));
  show("compare_and_swap, floating point", MPI_Compare_and_swap(value, &compare, result, MPI_DOUBLE, 1, 0, win));
#endif
  show("fetch_and_op, negative displacement", MPI_Fetch_and_op(value, result, MPI_LONG, 1, -1, MPI_SUM, win));
  show("compare_and_swap, rank too high", MPI_Compare_and_swap(value, &compare, result, MPI_LONG, 2, 0, win));
  show("compare_and_swap, null type", MPI_Compare_and_swap(value, &compare, result, MPI_DATATYPE_NULL, 1, 0, win));
  show("compare_and_swap, negative displacement", MPI_Compare_and_swap(value, &compare, result, MPI_LONG, 1, -1, win));
}

static void epochs(MPI_Group group) {
  each("no epoch", &(Put){1, 1, 1, 0, MPI_LONG, MPI_LONG, MPI_SUM});
  SHOW(MPI_Win_unlock(1, win));
  SHOW(MPI_Win_unlock_all(win));
  SHOW(MPI_Win_complete(win));
  SHOW(MPI_Win_wait(win));
  int flag = 0;
  SHOW(MPI_Win_test(win, &flag));
  SHOW(MPI_Win_flush(1, win));
  SHOW(MPI_Win_flush_all(win));
  SHOW(MPI_Win_flush_local(1, win));
  SHOW(MPI_Win_flush_local_all(win));
  SHOW(MPI_Win_sync(win));
  SHOW(MPI_Win_lock(77, 1, 0, win));
  SHOW(MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win));
  SHOW(MPI_Win_lock(MPI_LOCK_SHARED, -7, 0, win));
  SHOW(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
  SHOW(MPI_Win_unlock(MPI_PROC_NULL, win));
  SHOW(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
  SHOW(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
#ifndef OPEN_MPI /* lets it pass, and waits for ever at the end of that epoch */
  SHOW(MPI_Win_lock_all(0, win));
#endif
  SHOW(MPI_Put(value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
  SHOW(MPI_Win_flush(0, win));
  SHOW(MPI_Win_flush(2, win));
#ifdef OPEN_MPI /* MPICH does not survive it */
  SHOW(MPI_Win_unlock(0, win));
#endif
  SHOW(MPI_Win_unlock(2, win));
  SHOW(MPI_Win_unlock_all(win));
  SHOW(MPI_Win_start(group, 0, win));
  SHOW(MPI_Win_unlock(1, win));
  SHOW(MPI_Win_lock_all(0, win));
#ifndef OPEN_MPI /* lets it pass */
  SHOW(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
  SHOW(MPI_Win_fence(0, win));
#endif
  SHOW(MPI_Win_unlock_all(win));
  SHOW(MPI_Win_fence(1 << 20, win));
}

/* Places outside of the target's memory, which the libraries themselves do not look at. */
static void ranges(MPI_Errhandler errors) {
  MPI_Win dynamic;
  MPI_Datatype backwards, far;
  MPI_Aint own, there;
  int ok = 1;
  MPI_Type_vector(2, 1, -2, MPI_LONG, &backwards);
  MPI_Type_vector(2, 1, 16, MPI_LONG, &far);
  MPI_Type_commit(&backwards);
  MPI_Type_commit(&far);
  MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, win);
  ok &= ends_with(MPI_Put(value, 1, MPI_LONG, 1 - rank, 16, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
  ok &= ends_with(MPI_Put(value, 1, MPI_LONG, 1 - rank, (MPI_Aint)1 << 62, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
  ok &= ends_with(MPI_Get(result, 2, MPI_LONG, 1 - rank, 15, 2, MPI_LONG, win), MPI_ERR_RMA_RANGE);
  ok &= ends_with(MPI_Put(value, 2, MPI_LONG, 1 - rank, 1, 1, backwards, win), MPI_ERR_RMA_RANGE);
  ok &= ends_with(MPI_Put(value, 2, MPI_LONG, 1 - rank, 0, 1, far, win), MPI_ERR_RMA_RANGE);
  ok &= MPI_Put(value, 2, MPI_LONG, 1 - rank, 2, 1, backwards, win) == MPI_SUCCESS;
  ok &= MPI_Put(value, 1, MPI_LONG, 1 - rank, 15, 1, MPI_LONG, win) == MPI_SUCCESS;
  ok &= ends_with(MPI_Put(value, 2, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, win), MPI_ERR_TRUNCATE);
  ok &= ends_with(MPI_Put(NULL, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, win), MPI_ERR_BUFFER);
  ok &= ends_with(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
  ok &= ends_with(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
  MPI_Win_unlock(1 - rank, win);
  report("outside of the window", ok && handler_calls == 9);
  MPI_Type_free(&backwards);
  MPI_Type_free(&far);
  /* Of a dynamic window only the target knows. */
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
  MPI_Win_set_errhandler(dynamic, errors);
  MPI_Get_address(memory, &own);
  MPI_Sendrecv(&own, 1, MPI_AINT, 1 - rank, 0, &there, 1, MPI_AINT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  ok = MPI_Win_attach(dynamic, memory, sizeof(memory)) == MPI_SUCCESS;
  ok &= ends_with(MPI_Win_attach(dynamic, memory + 1, sizeof(long)), MPI_ERR_RMA_ATTACH);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, dynamic);
  ok &= MPI_Put(value, 1, MPI_LONG, 1 - rank, there + (MPI_Aint)sizeof(memory), 1, MPI_LONG, dynamic) == MPI_SUCCESS;
  ok &= ends_with(MPI_Win_flush(1 - rank, dynamic), MPI_ERR_RMA_RANGE);
  ok &= MPI_Win_flush_all(dynamic) == MPI_SUCCESS;
  ok &= MPI_Put(value, 1, MPI_LONG, 1 - rank, there, 1, MPI_LONG, dynamic) == MPI_SUCCESS;
  ok &= MPI_Win_unlock_all(dynamic) == MPI_SUCCESS;
  MPI_Win_lock_all(0, dynamic);
  MPI_Put(value, 1, MPI_LONG, 1 - rank, there + (MPI_Aint)sizeof(memory), 1, MPI_LONG, dynamic);
  ok &= ends_with(MPI_Win_unlock_all(dynamic), MPI_ERR_RMA_RANGE);
  MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, dynamic);
  MPI_Put(value, 1, MPI_LONG, 1 - rank, there + (MPI_Aint)sizeof(memory), 1, MPI_LONG, dynamic);
  ok &= ends_with(MPI_Win_unlock(1 - rank, dynamic), MPI_ERR_RMA_RANGE);
  MPI_Barrier(MPI_COMM_WORLD);
  ok &= MPI_Win_detach(dynamic, memory) == MPI_SUCCESS;
  ok &= ends_with(MPI_Win_detach(dynamic, memory), MPI_ERR_RMA_ATTACH);
  report("outside of what is attached", ok);
  MPI_Win_free(&dynamic);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  MPI_Errhandler errors;
  MPI_Group world, group;
  const int other = 1 - rank;
  MPI_Win_create_errhandler(handler, &errors);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &other, &group);
  MPI_Win_create(memory, sizeof(memory), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, errors);
  if (argc > 1 && strcmp(argv[1], "ranges") != 0) {
    MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL);
    MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
    if (rank == 0 && strcmp(argv[1], "MPI_Put") == 0) MPI_Put(value, 1, MPI_LONG, 7, 0, 1, MPI_LONG, win);
    if (rank == 0) MPI_Win_unlock(rank, win);
    MPI_Win_unlock(other, win);
  } else if (argc > 1) {
    ranges(errors);
  } else if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    arguments();
    MPI_Win_unlock(1, win);
    epochs(group);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
  MPI_Errhandler_free(&errors);
  MPI_Group_free(&world);
  MPI_Group_free(&group);
  return finish();
}
