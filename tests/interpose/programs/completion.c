/* SPDX-License-Identifier: BSD-3-Clause
 * The Wait and Test families on arrays that mix collectives, point-to-point and null requests; Request_free,
 * Request_get_status; errno. */
#include "world.h"

#include <errno.h>

enum { OPS = 6, COUNT = 3000, SLOTS = 3 * OPS };

static MPI_Comm comm;
static int *sent[OPS], *got[OPS], inbox[OPS], outbox[OPS];
static MPI_Request requests[SLOTS];

/* Slots 0, 3, ...: Ialltoall; 1, 4, ...: ring message or null on odd rounds; 2, 5, ...: its receive. */
static void start(int round) {
  for (int k = 0; k < OPS; ++k) {
    for (int i = 0; i < COUNT * size; ++i) {
      sent[k][i] = value_of(rank, i / COUNT, i % COUNT, round + k);
      got[k][i] = -1;
    }
    outbox[k] = value_of(rank, 0, k, round);
    inbox[k] = -1;
    MPI_Ialltoall(sent[k], COUNT, MPI_INT, got[k], COUNT, MPI_INT, comm, &requests[3 * k]);
    if (k % 2 == 0) {
      MPI_Isend(&outbox[k], 1, MPI_INT, (rank + 1) % size, k, comm, &requests[3 * k + 1]);
      MPI_Irecv(&inbox[k], 1, MPI_INT, (rank + size - 1) % size, k, comm, &requests[3 * k + 2]);
    } else {
      requests[3 * k + 1] = requests[3 * k + 2] = MPI_REQUEST_NULL;
    }
  }
}

static int right(int slot, int round) {
  const int k = slot / 3;
  if (slot % 3 == 1) return 1;
  if (slot % 3 == 2) return inbox[k] == value_of((rank + size - 1) % size, 0, k, round);
  for (int i = 0; i < COUNT * size; ++i)
    if (got[k][i] != value_of(i / COUNT, rank, i % COUNT, round + k)) return 0;
  return 1;
}

static int all_right(int round) {
  int ok = 1;
  for (int slot = 0; slot < SLOTS; ++slot) {
    ok &= requests[slot] == MPI_REQUEST_NULL;
    if (slot / 3 % 2 == 0 || slot % 3 == 0) ok &= right(slot, round);
  }
  return ok;
}

static int expected_completions(void) { return OPS + 2 * (OPS / 2); }

int main(int argc, char** argv) {
  enter(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int k = 0; k < OPS; ++k) {
    sent[k] = malloc(sizeof(int) * (size_t)(COUNT * size));
    got[k] = malloc(sizeof(int) * (size_t)(COUNT * size));
  }
  MPI_Status statuses[SLOTS], status;
  int flag, index, count, indices[SLOTS], done, ok;

  start(1);
  MPI_Waitall(SLOTS, requests, statuses);
  ok = all_right(1);
  for (int k = 0; k < OPS; k += 2) ok &= statuses[3 * k + 2].MPI_TAG == k;
  report("waitall", ok);

  start(2);
  for (done = 0, ok = 1;; ++done) {
    MPI_Waitany(SLOTS, requests, &index, &status);
    if (index == MPI_UNDEFINED) break;
    ok &= right(index, 2) && requests[index] == MPI_REQUEST_NULL;
  }
  report("waitany", ok && done == expected_completions() && all_right(2));

  start(3);
  for (done = 0, ok = 1;;) {
    MPI_Waitsome(SLOTS, requests, &count, indices, statuses);
    if (count == MPI_UNDEFINED) break;
    ok &= count > 0;
    for (int i = 0; i < count; ++i) ok &= right(indices[i], 3);
    done += count;
  }
  report("waitsome", ok && done == expected_completions() && all_right(3));

  start(4);
  for (flag = 0; !flag;) MPI_Testall(SLOTS, requests, &flag, statuses);
  report("testall", all_right(4));

  start(5);
  for (done = 0, ok = 1;;) {
    MPI_Testany(SLOTS, requests, &index, &flag, &status);
    if (flag && index == MPI_UNDEFINED) break;
    if (flag) {
      ok &= right(index, 5);
      ++done;
    }
  }
  report("testany", ok && done == expected_completions() && all_right(5));

  start(6);
  for (done = 0, ok = 1;;) {
    MPI_Testsome(SLOTS, requests, &count, indices, MPI_STATUSES_IGNORE);
    if (count == MPI_UNDEFINED) break;
    for (int i = 0; i < count; ++i) ok &= right(indices[i], 6);
    done += count;
  }
  report("testsome", ok && done == expected_completions() && all_right(6));

  start(7);
  for (int slot = SLOTS - 1; slot >= 0; --slot) {
    if (slot % 2 == 0)
      MPI_Wait(&requests[slot], &status);
    else
      for (flag = 0; !flag;) MPI_Test(&requests[slot], &flag, MPI_STATUS_IGNORE);
  }
  report("wait and test, last first", all_right(7));

  start(8);
  for (int slot = 0; slot < SLOTS; ++slot) {
    for (flag = 0; !flag;) MPI_Request_get_status(requests[slot], &flag, &status);
    ok = slot / 3 % 2 == 1 || requests[slot] != MPI_REQUEST_NULL;
    if (!ok) break;
  }
  ok &= right(0, 8); /* finished, though the request still is */
  MPI_Waitall(SLOTS, requests, MPI_STATUSES_IGNORE);
  report("request_get_status", ok && all_right(8));

  if (argc > 1 && strcmp(argv[1], "free") == 0) {
    /* MPI forbids to free a nonblocking collective's request and both libraries refuse. Offpath lets it go on. */
    start(9);
    for (int k = 0; k < OPS; ++k) MPI_Request_free(&requests[3 * k]);
    ok = requests[0] == MPI_REQUEST_NULL;
    MPI_Waitall(SLOTS, requests, MPI_STATUSES_IGNORE);
    for (int arrived = 0, tries = 0; !arrived && tries < 20000; ++tries) {
      MPI_Request none = MPI_REQUEST_NULL;
      MPI_Test(&none, &flag, MPI_STATUS_IGNORE);
      arrived = 1;
      for (int k = 0; k < OPS; ++k) arrived &= right(3 * k, 9);
      usleep(100);
    }
    for (int k = 0; k < OPS; ++k) ok &= right(3 * k, 9);
    report("request_free", ok);
    start(10);
    for (int k = 0; k < OPS; ++k) MPI_Request_free(&requests[3 * k]);
    MPI_Waitall(SLOTS, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm); /* with operations under way */
    report("comm_free with freed requests", comm == MPI_COMM_NULL);
  }

  errno = 4242;
  int mine[64], theirs[64];
  MPI_Request request;
  memset(mine, 0, sizeof(mine));
  MPI_Ialltoall(mine, 1, MPI_INT, theirs, 1, MPI_INT, MPI_COMM_WORLD, &request);
  int kept = errno == 4242;
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  (void)kept;
  if (getenv("CHECK_ERRNO") != NULL && (!kept || errno != 4242))
    fprintf(stderr, "errno was changed\n"), ++check_failures;
  return finish();
}
