/* SPDX-License-Identifier: BSD-3-Clause
 * Communicators, windows and persistent collectives that are made while one rank has no memory: each of the allocations that this takes
 * fails once. All ranks have what they made then, whichever way it goes, and it does what it is to do. */
#include "persistent_names.h"
#include "world.h"

/* Read by the stand-in for the service's library (fake/fake_memory.cpp). */
__attribute__((visibility("default"))) long offpath_fake_allocations_left;

enum { MOST = 400, PART = 1024 };
static int wrong;

static void use(MPI_Comm comm) {
  int own, members, sum = -1;
  MPI_Request request;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &members);
  MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  wrong += sum != members * (members - 1) / 2;
}

static void duplicate(MPI_Comm* made) { MPI_Comm_dup(MPI_COMM_WORLD, made); }
static void dup_with_info(MPI_Comm* made) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "offpath_compress", "off-or-something-longer");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, made);
  MPI_Info_free(&info);
}
static void split(MPI_Comm* made) { MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, made); }
static void create_group(MPI_Comm* made) {
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, made);
  MPI_Group_free(&group);
}
static void cartesian(MPI_Comm* made) {
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, made);
}
static void graph(MPI_Comm* made) {
  const int from = (rank + 1) % size, to = (rank + size - 1) % size, weight = 1;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, &weight, 1, &to, &weight, MPI_INFO_NULL, 0, made);
}

static const struct {
  const char* name;
  void (*make)(MPI_Comm* made);
} communicators[] = {{"dup", duplicate},  {"dup_with_info", dup_with_info},
                     {"split", split},    {"create_group", create_group},
                     {"cart", cartesian}, {"graph", graph}};

static void persistent(void) {
  static int mine, sum;
  MPI_Request request;
  INIT_OF(Allreduce)(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  const long left = offpath_fake_allocations_left;
  offpath_fake_allocations_left = 0;
  for (int round = 0; round < 2; ++round) {
    mine = rank + round, sum = -1;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += sum != size * (size - 1) / 2 + size * round;
  }
  MPI_Request_free(&request);
  offpath_fake_allocations_left = left;
}

static void window(void) {
  int* memory;
  MPI_Win win;
  MPI_Win_allocate(PART * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  const long left = offpath_fake_allocations_left;
  offpath_fake_allocations_left = 0;
  *memory = -1;
  MPI_Win_fence(0, win);
  MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  wrong += *memory != (rank + size - 1) % size;
  MPI_Win_free(&win);
  offpath_fake_allocations_left = left;
}

static void file(void) {
  char name[64];
  MPI_File opened;
  MPI_Status status;
  int at = -1;
  snprintf(name, sizeof(name), "no-memory-%d", (int)sizeof(int));
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &opened);
  const long left = offpath_fake_allocations_left;
  offpath_fake_allocations_left = 0;
  MPI_File_set_view(opened, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_File_write_at(opened, rank, &rank, 1, MPI_INT, &status);
  MPI_File_read_at(opened, rank, &at, 1, MPI_INT, &status);
  wrong += at != rank;
  MPI_File_close(&opened);
  offpath_fake_allocations_left = left;
}

static int kind; /* of communicators */
static void communicator(void) {
  MPI_Comm made;
  communicators[kind].make(&made);
  const long left = offpath_fake_allocations_left;
  offpath_fake_allocations_left = 0;
  use(made);
  MPI_Comm_free(&made);
  offpath_fake_allocations_left = left;
}

/* Until nothing fails any more. */
static void fail_all(const char* name, void (*act)(void)) {
  wrong = 0;
  for (int victim = 0; victim < size; victim += size - 1) {
    int failed = 1, number = 0;
    while (failed && ++number < MOST) {
      offpath_fake_allocations_left = rank == victim ? number : 0;
      act();
      failed = offpath_fake_allocations_left == 0;
      offpath_fake_allocations_left = 0;
      MPI_Bcast(&failed, 1, MPI_INT, victim, MPI_COMM_WORLD);
    }
    wrong += number < 3 || number == MOST; /* else nothing was tried, or it never ends */
  }
  use(MPI_COMM_WORLD);
  report(name, wrong == 0);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  use(MPI_COMM_WORLD);
  for (; kind < (int)(sizeof(communicators) / sizeof(communicators[0])); ++kind)
    fail_all(communicators[kind].name, communicator);
  fail_all("window", window);
  fail_all("file", file);
  if (argc > 1) fail_all("persistent", persistent);
  return finish();
}
