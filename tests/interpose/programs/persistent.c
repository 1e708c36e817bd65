/* SPDX-License-Identifier: BSD-3-Clause
 * Persistent collectives among persistent messages: started by Start, in an order that differs between the ranks, and
 * by Startall; completed by all of the Wait and Test families; used again while inactive, and freed.
 *
 * Not compared with the native library: MPICH 4.0 has its own ideas, so the program knows what is right.
 */
#include "persistent_names.h"
#include "world.h"

enum { COUNT = 700, ALLTOALL = 0, ALLREDUCE = 1, SENT = 2, RECEIVED = 3, NONE = 4, SLOTS = 5 };

static int *sent, *got, outbox[COUNT], inbox[COUNT];
static long part[COUNT], sum[COUNT];
static MPI_Comm comm;
static MPI_Request requests[SLOTS], kept[SLOTS];

static void fill(int round) {
  for (int i = 0; i < COUNT * size; ++i) sent[i] = value_of(rank, i / COUNT, i % COUNT, round), got[i] = -1;
  for (int i = 0; i < COUNT; ++i) {
    outbox[i] = value_of(rank, 0, i, round), inbox[i] = -1;
    part[i] = (long)(rank + 1) * (i + round), sum[i] = -1;
  }
}

static int right(int round) {
  int ok = memcmp(requests, kept, sizeof(kept)) == 0;
  for (int i = 0; i < COUNT * size; ++i) ok &= got[i] == value_of(i / COUNT, rank, i % COUNT, round);
  for (int i = 0; i < COUNT; ++i) {
    ok &= inbox[i] == value_of((rank + size - 1) % size, 0, i, round);
    ok &= sum[i] == (long)size * (size + 1) / 2 * (i + round);
  }
  return ok;
}

static int any_status; /* MPI does not say what a native collective leaves there */

static int is_empty(const MPI_Status* status) {
  int count = -1;
  if (any_status) return 1;
  MPI_Get_count(status, MPI_BYTE, &count);
  return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && count == 0;
}

static int wait_all(void) {
  MPI_Status statuses[SLOTS];
  MPI_Waitall(SLOTS, requests, statuses);
  return is_empty(&statuses[ALLTOALL]) && is_empty(&statuses[ALLREDUCE]) && is_empty(&statuses[NONE]) &&
         statuses[RECEIVED].MPI_SOURCE == (rank + size - 1) % size;
}

static int wait_any(void) {
  int index, seen = 0;
  MPI_Status status;
  for (int i = 0; i < 4; ++i) {
    MPI_Waitany(SLOTS, requests, &index, &status);
    if (index == MPI_UNDEFINED) return 0;
    seen |= 1 << index;
  }
  MPI_Waitany(SLOTS, requests, &index, &status);
  return seen == 15 && index == MPI_UNDEFINED;
}

static int wait_some(void) {
  int count, indices[SLOTS], seen = 0;
  for (MPI_Waitsome(SLOTS, requests, &count, indices, MPI_STATUSES_IGNORE); count != MPI_UNDEFINED;
       MPI_Waitsome(SLOTS, requests, &count, indices, MPI_STATUSES_IGNORE))
    for (int i = 0; i < count; ++i) seen += 1 << indices[i];
  return seen == 15;
}

static int wait_each(void) {
  for (int i = SLOTS - 1; i >= 0; --i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  return 1;
}

static int test_all(void) {
  for (int flag = 0; !flag;) MPI_Testall(SLOTS, requests, &flag, MPI_STATUSES_IGNORE);
  return 1;
}

static int test_any(void) {
  int index = 0, flag, seen = 0;
  MPI_Status status;
  while (index != MPI_UNDEFINED) {
    MPI_Testany(SLOTS, requests, &index, &flag, &status);
    if (!flag) index = 0;
    if (flag && index != MPI_UNDEFINED) seen += 1 << index;
  }
  return seen == 15;
}

static int test_some(void) {
  int count = 0, indices[SLOTS], seen = 0;
  while (count != MPI_UNDEFINED) {
    MPI_Testsome(SLOTS, requests, &count, indices, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; ++i) seen += 1 << indices[i];
  }
  return seen == 15;
}

static int test_each(void) {
  for (int i = 0; i < SLOTS; ++i)
    for (int flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
  return 1;
}

static int ask_first(void) {
  MPI_Status status;
  for (int flag = 0; !flag;) MPI_Request_get_status(requests[ALLREDUCE], &flag, &status);
  const int ok = is_empty(&status) && sum[1] != -1;
  return wait_all() && ok;
}

static const struct {
  const char* name;
  int (*complete)(void);
} ways[] = {{"waitall", wait_all},   {"waitany", wait_any}, {"waitsome", wait_some},
            {"wait", wait_each},     {"testall", test_all}, {"testany", test_any},
            {"testsome", test_some}, {"test", test_each},   {"request_get_status", ask_first}};

/* While nothing is started, everything is complete. */
static int inactive(void) {
  int flag = 0, index = 0;
  MPI_Status status;
  MPI_Wait(&requests[ALLREDUCE], &status);
  int ok = is_empty(&status);
  MPI_Test(&requests[ALLTOALL], &flag, &status);
  ok &= flag && is_empty(&status);
  MPI_Waitall(SLOTS, requests, MPI_STATUSES_IGNORE);
  MPI_Testany(2, requests, &index, &flag, &status);
  ok &= flag && index == MPI_UNDEFINED;
  MPI_Request_get_status(requests[ALLTOALL], &flag, &status);
  return ok && flag && memcmp(requests, kept, sizeof(kept)) == 0;
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  any_status = argc > 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  sent = malloc(sizeof(int) * (size_t)(COUNT * size)), got = malloc(sizeof(int) * (size_t)(COUNT * size));
  MPI_Datatype block; /* the request keeps it */
  MPI_Type_contiguous(COUNT, MPI_INT, &block);
  MPI_Type_commit(&block);
  INIT_OF(Alltoall)(sent, 1, block, got, COUNT, MPI_INT, comm, MPI_INFO_NULL, &requests[ALLTOALL]);
  MPI_Type_free(&block);
  INIT_OF(Allreduce)(part, sum, COUNT, MPI_LONG, MPI_SUM, comm, MPI_INFO_NULL, &requests[ALLREDUCE]);
  MPI_Send_init(outbox, COUNT, MPI_INT, (rank + 1) % size, 5, comm, &requests[SENT]);
  MPI_Recv_init(inbox, COUNT, MPI_INT, (rank + size - 1) % size, 5, comm, &requests[RECEIVED]);
  requests[NONE] = MPI_REQUEST_NULL;
  memcpy(kept, requests, sizeof(kept));
  report("inactive before the first start", inactive());
  for (int way = 0; way < (int)(sizeof(ways) / sizeof(ways[0])); ++way) {
    int ok = 1;
    for (int round = 0; round < 4; ++round) {
      fill(10 * way + round);
      if (round % 2 == 0) MPI_Startall(4, requests);
      for (int i = 0; round % 2 == 1 && i < 4; ++i) MPI_Start(&requests[(i + rank) % 4]);
      ok &= ways[way].complete();
      ok &= right(10 * way + round);
    }
    report(ways[way].name, ok && inactive());
  }
  /* One more start, with the communicator gone. */
  fill(99);
  MPI_Comm_free(&comm);
  MPI_Startall(4, requests);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  report("after the communicator was freed", right(99));
  int ok = 1;
  for (int i = 0; i < 4; ++i) {
    MPI_Request_free(&requests[i]);
    ok &= requests[i] == MPI_REQUEST_NULL;
  }
  report("freed", ok);
  free(sent), free(got);
  return finish();
}
