/* SPDX-License-Identifier: BSD-3-Clause
 * A program whose services are killed one after another, each at some moment of a part of the program: exchanges on
 * communicators of the beginning and on ones made meanwhile, in windows, by persistent requests and by messages. Arguments: a
 * folder, the number of kills. It leaves "ready-<n>" when a part has begun, and makes CALLS exchanges once "go-<n>" is there.
 * In every other part a rank waits for that before it posts what the others have posted. */
#include "world.h"

enum { CALLS = 200, MOST = 3000, UNDER_WAY = 3 };

static int wrong, failed, round_number;
static int *send[UNDER_WAY], *recv[UNDER_WAY];

static void fill(int slot, int count) {
  for (int i = 0; i < count * size; ++i)
    send[slot][i] = value_of(rank, i / count, i % count, round_number), recv[slot][i] = -1;
}

static void take(int slot, int count, int number, int code) {
  if (code != MPI_SUCCESS) ++failed;
  for (int i = 0; code == MPI_SUCCESS && i < count * size; ++i)
    if (recv[slot][i] != value_of(i / count, rank, i % count, number)) {
      ++wrong;
      return;
    }
}

static void exchange(MPI_Comm comm, int count) {
  MPI_Request requests[UNDER_WAY];
  const int first = round_number;
  for (int slot = 0; slot < UNDER_WAY; ++slot, ++round_number) {
    fill(slot, count);
    MPI_Ialltoall(send[slot], count, MPI_INT, recv[slot], count, MPI_INT, comm, &requests[slot]);
  }
  for (int slot = 0; slot < UNDER_WAY; ++slot)
    take(slot, count, first + slot, MPI_Wait(&requests[slot], MPI_STATUS_IGNORE));
}

/* Two to each neighbour. */
static void send_around(int synchronous) {
  const int number = round_number++;
  MPI_Request requests[4];
  for (int slot = 0; slot < 2; ++slot) {
    for (int i = 0; i < MOST; ++i) send[slot][i] = value_of(rank, slot, i, number), recv[slot][i] = -1;
    MPI_Irecv(recv[slot], MOST, MPI_INT, left_of, slot, MPI_COMM_WORLD, &requests[slot]);
    if (synchronous)
      MPI_Issend(send[slot], MOST, MPI_INT, right_of, slot, MPI_COMM_WORLD, &requests[2 + slot]);
    else
      MPI_Isend(send[slot], MOST, MPI_INT, right_of, slot, MPI_COMM_WORLD, &requests[2 + slot]);
  }
  if (MPI_Waitall(4, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS) ++failed;
  for (int slot = 0; slot < 2; ++slot)
    for (int i = 0; i < MOST; ++i) wrong += recv[slot][i] != value_of(left_of, slot, i, number);
}

static void put_around(void) {
  const int number = round_number++;
  int* part;
  MPI_Win win;
  MPI_Win_allocate(sizeof(int) * MOST, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
  for (int i = 0; i < MOST; ++i) send[0][i] = value_of(rank, right_of, i, number), part[i] = -1;
  MPI_Win_fence(0, win);
  MPI_Put(send[0], MOST, MPI_INT, right_of, 0, MOST, MPI_INT, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < MOST; ++i) wrong += part[i] != value_of(left_of, rank, i, number);
  MPI_Win_free(&win);
}

static void start(MPI_Request* request, int count) {
  fill(0, count);
  MPI_Start(request);
  take(0, count, round_number++, MPI_Wait(request, MPI_STATUS_IGNORE));
}

static void make_persistent(MPI_Comm comm, int count, MPI_Request* request) {
#if MPI_VERSION >= 4
  MPI_Alltoall_init(send[0], count, MPI_INT, recv[0], count, MPI_INT, comm, MPI_INFO_NULL, request);
#else
  (void)comm, (void)count, *request = MPI_REQUEST_NULL;
#endif
}

/* It is asked for nothing, and answers. */
static void stay_behind(const char* until) {
  int found;
  while (access(until, F_OK) != 0) {
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    usleep(1000);
  }
}

int main(int argc, char** argv) {
  MPI_Comm first, made, unused;
  MPI_Request persistent;
  enter(&argc, &argv);
  folder = argv[1];
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_dup(MPI_COMM_WORLD, &unused); /* nobody stays at a service for it */
  MPI_Comm_set_errhandler(first, MPI_ERRORS_RETURN);
  for (int slot = 0; slot < UNDER_WAY; ++slot) {
    send[slot] = malloc(sizeof(int) * MOST * (size_t)size);
    recv[slot] = malloc(sizeof(int) * MOST * (size_t)size);
  }
  make_persistent(first, MOST, &persistent);
  const int kills = argc > 2 ? atoi(argv[2]) : 0;
  for (int kill = 0; kill < kills; ++kill) {
    for (int call = 0, gone = 0, left = CALLS; left > 0; ++call, left -= gone) {
      if (call == 5 && rank == 0) make_file(numbered_path("ready", kill));
      if (call == 5 && rank == 0 && kill % 2 == 0) stay_behind(numbered_path("go", kill));
      exchange(first, call % 2 ? 10 : MOST);
      if (call % 4 == 0) exchange(MPI_COMM_WORLD, MOST);
      send_around(call % 8 == 7);
      if (call % 8 == 0 && persistent != MPI_REQUEST_NULL) start(&persistent, MOST);
      if (call % 16 != 0) continue;
      MPI_Comm_dup(first, &made);
      exchange(made, MOST);
      MPI_Comm_free(&made);
      put_around();
      if (!gone) gone = access(numbered_path("go", kill), F_OK) == 0;
      MPI_Bcast(&gone, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
  }
  if (persistent != MPI_REQUEST_NULL) MPI_Request_free(&persistent);
  MPI_Comm_free(&first);
  MPI_Comm_free(&unused);
  int mine[] = {failed, wrong}, all[2];
  MPI_Reduce(mine, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("failed %d\n", all[0]);
  report("after the losses", wrong == 0);
  return finish();
}
