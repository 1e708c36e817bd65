/* SPDX-License-Identifier: BSD-3-Clause
 * Large-count functions as a program finds them at run time that was built for many MPIs: those that are there must
 * work. With an argument all must be there. */
#define _GNU_SOURCE
#include "mpi/native/prototypes.h"
#include "world.h"

#include <dlfcn.h>

enum { COUNT = 3000, MEMBERS = 16 };

static int all_there;
static int a[COUNT * MEMBERS], b[COUNT * MEMBERS];
static MPI_Count counts[MEMBERS];
static MPI_Aint displs[MEMBERS], places[MEMBERS];
static MPI_Datatype types[MEMBERS];
static MPI_Request request;

#define FIND(name) __typeof__(&MPI_##name) name = (__typeof__(&MPI_##name))find("MPI_" #name)

static void* find(const char* name) {
  void* function = dlsym(RTLD_DEFAULT, name);
  if (function == NULL && all_there) report(name, 0);
  return function;
}

static void prepare(void) {
  for (int i = 0; i < COUNT * size; ++i) a[i] = value_of(rank, i / COUNT, i % COUNT, 0), b[i] = -1;
}

static void end(void) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

static int equals(const int* part, int from, int to) {
  for (int i = 0; i < COUNT; ++i) {
    if (part[i] != value_of(from, to, i, 0)) return 0;
  }
  return 1;
}

static int exchanged(void) {
  int ok = 1;
  for (int from = 0; from < size; ++from) ok = ok && equals(b + from * COUNT, from, rank);
  return ok;
}

static int gathered(void) {
  int ok = 1;
  for (int from = 0; from < size; ++from) ok = ok && equals(b + from * COUNT, from, 0);
  return ok;
}

static int summed(int part) {
  int ok = 1;
  for (int i = 0; i < COUNT; ++i) {
    int sum = 0;
    for (int from = 0; from < size; ++from) sum += value_of(from, part, i, 0);
    ok = ok && b[i] == sum;
  }
  return ok;
}

static void check_nonblocking(void) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  FIND(Ialltoall_c);
  if (Ialltoall_c != NULL) {
    prepare(), Ialltoall_c(a, COUNT, MPI_INT, b, COUNT, MPI_INT, comm, &request), end();
    report("ialltoall", exchanged());
  }
  FIND(Ialltoallv_c);
  if (Ialltoallv_c != NULL) {
    prepare(), Ialltoallv_c(a, counts, displs, MPI_INT, b, counts, displs, MPI_INT, comm, &request), end();
    report("ialltoallv", exchanged());
  }
  FIND(Ialltoallw_c);
  if (Ialltoallw_c != NULL) {
    prepare(), Ialltoallw_c(a, counts, places, types, b, counts, places, types, comm, &request), end();
    report("ialltoallw", exchanged());
  }
  FIND(Ibcast_c);
  if (Ibcast_c != NULL) {
    prepare();
    if (rank == size - 1) memcpy(b, a, COUNT * sizeof(int));
    Ibcast_c(b, COUNT, MPI_INT, size - 1, comm, &request), end();
    report("ibcast", equals(b, size - 1, 0));
  }
  FIND(Iallgatherv_c);
  if (Iallgatherv_c != NULL) {
    prepare(), Iallgatherv_c(a, COUNT, MPI_INT, b, counts, displs, MPI_INT, comm, &request), end();
    report("iallgatherv", gathered());
  }
  FIND(Igatherv_c);
  if (Igatherv_c != NULL) {
    const int root = rank == 1; /* what others give for the receive side means nothing */
    prepare(), Igatherv_c(a, COUNT, MPI_INT, root ? b : NULL, root ? counts : NULL, root ? displs : NULL, MPI_INT, 1,
                          comm, &request);
    end();
    report("igatherv", !root || gathered());
  }
  FIND(Iscatterv_c);
  if (Iscatterv_c != NULL) {
    prepare(), Iscatterv_c(a, counts, displs, MPI_INT, b, COUNT, MPI_INT, 0, comm, &request), end();
    report("iscatterv", equals(b, 0, rank));
  }
  FIND(Iallreduce_c);
  if (Iallreduce_c != NULL) {
    prepare(), Iallreduce_c(a, b, COUNT, MPI_INT, MPI_SUM, comm, &request), end();
    report("iallreduce", summed(0));
  }
  FIND(Ireduce_scatter_c);
  if (Ireduce_scatter_c != NULL) {
    prepare(), Ireduce_scatter_c(a, b, counts, MPI_INT, MPI_SUM, comm, &request), end();
    report("ireduce_scatter", summed(rank));
  }
}

static void check_other_forms(void) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  FIND(Alltoallv_c);
  if (Alltoallv_c != NULL) {
    prepare(), Alltoallv_c(a, counts, displs, MPI_INT, b, counts, displs, MPI_INT, comm);
    report("alltoallv", exchanged());
  }
  FIND(Bcast_c);
  if (Bcast_c != NULL) { /* more than an int counts, of no memory */
    MPI_Datatype nothing;
    MPI_Type_contiguous(0, MPI_INT, &nothing), MPI_Type_commit(&nothing);
    report("bcast", Bcast_c(b, 5000000000, nothing, 0, comm) == MPI_SUCCESS);
    MPI_Type_free(&nothing);
  }
  FIND(Allreduce_c);
  if (Allreduce_c != NULL) {
    prepare(), Allreduce_c(a, b, COUNT, MPI_INT, MPI_SUM, comm);
    report("allreduce", summed(0));
  }
  FIND(Gatherv_c);
  if (Gatherv_c != NULL) {
    prepare(), Gatherv_c(a, COUNT, MPI_INT, b, counts, displs, MPI_INT, 0, comm);
    report("gatherv", rank != 0 || gathered());
  }
  FIND(Alltoallw_c);
  if (Alltoallw_c != NULL) {
    prepare(), Alltoallw_c(a, counts, places, types, b, counts, places, types, comm);
    report("alltoallw", exchanged());
  }
  FIND(Alltoallv_init_c);
  if (Alltoallv_init_c != NULL) {
    prepare();
    int ok = Alltoallv_init_c(a, counts, displs, MPI_INT, b, counts, displs, MPI_INT, comm, MPI_INFO_NULL, &request) ==
             MPI_SUCCESS;
    for (int i = 0; i < 2 && ok; ++i) {
      prepare(), MPI_Start(&request), MPI_Wait(&request, MPI_STATUS_IGNORE);
      ok = exchanged();
    }
    if (ok) MPI_Request_free(&request);
    report("alltoallv_init", ok);
  }
  FIND(Ineighbor_alltoallw_c);
  if (Ineighbor_alltoallw_c != NULL) {
    const int periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(comm, 1, &size, &periodic, 0, &ring);
    prepare();
    const MPI_Aint both[2] = {0, COUNT * sizeof(int)};
    Ineighbor_alltoallw_c(a, counts, both, types, b, counts, both, types, ring, &request), end();
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    report("ineighbor_alltoallw", size < 3 || (equals(b, left, 1) && equals(b + COUNT, right, 0)));
    FIND(Neighbor_alltoall_c);
    if (Neighbor_alltoall_c != NULL) {
      prepare(), Neighbor_alltoall_c(a, COUNT, MPI_INT, b, COUNT, MPI_INT, ring);
      report("neighbor_alltoall", size < 3 || (equals(b, left, 1) && equals(b + COUNT, right, 0)));
    }
    MPI_Comm_free(&ring);
  }
}

static void check_messages(void) {
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  FIND(Send_c);
  if (Send_c == NULL) return;
  prepare();
  MPI_Irecv(b, COUNT, MPI_INT, before, 3, MPI_COMM_WORLD, &request);
  Send_c(a, COUNT, MPI_INT, next, 3, MPI_COMM_WORLD), end();
  report("send", equals(b, before, 0));
}

static void check_remote(void) {
  MPI_Win win;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  FIND(Put_c);
  FIND(Get_c);
  FIND(Accumulate_c);
  FIND(Get_accumulate_c);
  FIND(Rput_c);
  FIND(Rget_accumulate_c);
  if (Put_c == NULL) return;
  prepare();
  FIND(Win_create_c);
  if (Win_create_c != NULL)
    Win_create_c(b, sizeof(b), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  else
    MPI_Win_create(b, sizeof(b), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  Put_c(a, COUNT, MPI_INT, next, 0, COUNT, MPI_INT, win);
  MPI_Win_fence(0, win);
  report("put", equals(b, before, 0));
  Accumulate_c(a, COUNT, MPI_INT, next, 0, COUNT, MPI_INT, MPI_REPLACE, win);
  MPI_Win_fence(0, win);
  report("accumulate", equals(b, before, 0));
  int got[COUNT], old[COUNT];
  MPI_Win_lock_all(0, win);
  Get_accumulate_c(NULL, 0, MPI_INT, old, COUNT, MPI_INT, next, 0, COUNT, MPI_INT, MPI_NO_OP, win);
  Get_c(got, COUNT, MPI_INT, next, 0, COUNT, MPI_INT, win);
  MPI_Win_flush_all(win);
  report("get", equals(got, rank, 0) && equals(old, rank, 0));
  Rput_c(a, COUNT, MPI_INT, next, COUNT, COUNT, MPI_INT, win, &request), end();
  MPI_Win_flush(next, win);
  Rget_accumulate_c(a, COUNT, MPI_INT, old, COUNT, MPI_INT, next, COUNT, COUNT, MPI_INT, MPI_SUM, win, &request), end();
  MPI_Win_unlock_all(win);
  report("request", equals(old, rank, 0));
  MPI_Win_free(&win);
  FIND(Win_allocate_c);
  if (Win_allocate_c == NULL) return;
  int* base = NULL;
  int ok = Win_allocate_c(sizeof(got), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) == MPI_SUCCESS;
  MPI_Win_fence(0, win);
  Put_c(a, COUNT - 1, MPI_INT, next, sizeof(int), COUNT - 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  report("allocated",
         ok && base[1] == value_of(before, 0, 0, 0) && base[COUNT - 1] == value_of(before, 0, COUNT - 2, 0));
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  all_there = argc > 1;
  for (int i = 0; i < MEMBERS; ++i) {
    counts[i] = COUNT, displs[i] = (MPI_Aint)i * COUNT, places[i] = displs[i] * (MPI_Aint)sizeof(int);
    types[i] = MPI_INT;
  }
  check_nonblocking();
  check_other_forms();
  check_messages();
  check_remote();
  return finish();
}
