// SPDX-License-Identifier: BSD-3-Clause
// Goes on after a process is lost: "survivors MODE ROUNDS [MICROSECONDS]". Modes:
//   posted    the last rank kills itself when it has posted its part of round 5
//   later     the same after so many microseconds, wherever it is
//   revoked   nobody is lost: in round 5 rank 0 revokes the communicator, which the others wait on
// Whoever sees an error revokes, shrinks and goes on where the slowest survivor is. Results are computed again by hand. The first
// survivor prints "SIZE ranks: right", or what was wrong; "shrunk" if a communicator was left, and by which errors.
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { COUNT = 4000, KINDS = 5, TURN = 5 };

static int wrong, shrunk, seen_failed, seen_revoked, world_rank;
static const char* mode;

static void expect(int right, const char* what, int round) {
  if (right || wrong++ > 0) return;
  printf("rank %d: %s in round %d\n", world_rank, what, round);
  fflush(stdout);
}

static void die(int signal) {
  (void)signal;
  raise(SIGKILL);
}

static int class_of(int code) {
  int found = MPI_SUCCESS;
  MPI_Error_class(code, &found);
  return found;
}

// True: it has failed, in one of the ways that programs of this kind know.
static int has_failed(int code, int round) {
  if (code == MPI_SUCCESS) return 0;
  const int found = class_of(code);
  seen_revoked += found == MPIX_ERR_REVOKED;
  seen_failed += found == MPIX_ERR_PROC_FAILED || found == MPIX_ERR_PROC_FAILED_PENDING;
  // The library itself returns others, too, at times, when a process is lost while it makes a communicator.
  if (strcmp(mode, "later") == 0) return 1;
  if (found != MPIX_ERR_REVOKED && found != MPIX_ERR_PROC_FAILED && found != MPIX_ERR_PROC_FAILED_PENDING) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    expect(0, text, round);
  }
  return 1;
}

static int value(int from, int to, int i, int round) { return from * 1000003 + to * 7919 + i * 31 + round * 104729; }

static int one_round(MPI_Comm comm, int round) {
  static int counts[64], displacements[64];
  int rank = 0, size = 0, code = MPI_SUCCESS, all_right = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int kind = round % KINDS, root = round % size;
  int* to = malloc(sizeof(int) * COUNT * (size_t)size);
  int* from = malloc(sizeof(int) * COUNT * (size_t)size);
  for (int peer = 0; peer < size; ++peer) {
    for (int i = 0; i < COUNT; ++i)
      to[peer * COUNT + i] = value(rank, kind < 2 ? peer : 0, i, round), from[peer * COUNT + i] = -1;
    counts[peer] = COUNT, displacements[peer] = peer * COUNT;
  }
  if (kind == 3) memcpy(from, to, sizeof(int) * COUNT);
  MPI_Request request = MPI_REQUEST_NULL;
  if (kind == 0) code = MPI_Ialltoall(to, COUNT, MPI_INT, from, COUNT, MPI_INT, comm, &request);
  if (kind == 1)
    code = MPI_Ialltoallv(to, counts, displacements, MPI_INT, from, counts, displacements, MPI_INT, comm, &request);
  if (kind == 2) code = MPI_Iallreduce(to, from, COUNT, MPI_INT, MPI_BXOR, comm, &request);
  if (kind == 3) code = MPI_Ibcast(from, COUNT, MPI_INT, root, comm, &request);
  if (kind == 4) code = MPI_Allgather(to, COUNT, MPI_INT, from, COUNT, MPI_INT, comm);
  if (strcmp(mode, "posted") == 0 && round == TURN && shrunk == 0 && rank == size - 1) raise(SIGKILL);
  if (code == MPI_SUCCESS && request != MPI_REQUEST_NULL) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; code == MPI_SUCCESS && i < COUNT; ++i) {
    int bits = 0;
    for (int peer = 0; peer < size; ++peer) {
      bits ^= value(peer, 0, i, round);
      if (kind < 2) all_right &= from[peer * COUNT + i] == value(peer, rank, i, round);
      if (kind == 4) all_right &= from[peer * COUNT + i] == value(peer, 0, i, round);
    }
    if (kind == 2) all_right &= from[i] == bits;
    if (kind == 3) all_right &= from[i] == value(root, 0, i, round);
  }
  expect(all_right, "wrong data", round);
  free(to);
  free(from);
  return code;
}

// One that is made and left within a round. Not at random moments: Open MPI 5.0.11 crashes where it hears of a loss meanwhile.
static int duplicated(MPI_Comm comm, int round) {
  MPI_Comm made = MPI_COMM_NULL;
  int code = MPI_Comm_dup(comm, &made);
  if (code != MPI_SUCCESS) return code;
  code = one_round(made, round);
  if (code != MPI_SUCCESS) MPIX_Comm_revoke(made);
  MPI_Comm_free(&made);
  return code;
}

// A long message to the next rank and from the one before.
static int passed_on(MPI_Comm comm, int round) {
  static int to[COUNT], from[COUNT];
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < COUNT; ++i) to[i] = value(rank, 1, i, round);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  const int code =
      MPI_Sendrecv(to, COUNT, MPI_INT, next, round, from, COUNT, MPI_INT, before, round, comm, MPI_STATUS_IGNORE);
  int all_right = 1;
  for (int i = 0; code == MPI_SUCCESS && i < COUNT; ++i) all_right &= from[i] == value(before, 1, i, round);
  expect(all_right, "wrong message", round);
  return code;
}

static int recover(MPI_Comm* comm, int* round) {
  MPI_Comm next = MPI_COMM_NULL;
  ++shrunk;
  MPIX_Comm_revoke(*comm);
  int code = MPIX_Comm_shrink(*comm, &next);
  if (code != MPI_SUCCESS) return code;
  MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
  MPI_Comm_free(comm);
  *comm = next;
  const int own = *round;
  return MPI_Allreduce(&own, round, 1, MPI_INT, MPI_MIN, next);
}

// The library's MPI_Finalize waits for the lost process (Open MPI 5.0.11). What comes before that is done.
static int leave(MPI_Comm comm, int keyval, void* value, void* state) {
  (void)comm, (void)keyval, (void)value, (void)state;
  _exit(wrong != 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  mode = argv[1];
  const int rounds = atoi(argv[2]);
  int size = 0, rank = 0, flag = 1;
  MPI_Comm comm;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  one_round(comm, 0);
  if (argc > 3 && world_rank == size - 1) {
    const struct itimerval when = {{0, 0}, {atoi(argv[3]) / 1000000, atoi(argv[3]) % 1000000}};
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &when, NULL);
  }
  // The victim may live longer than so many rounds.
  for (int round = 1; round < rounds || (strcmp(mode, "later") == 0 && shrunk == 0); ++round) {
    int code = MPI_SUCCESS;
    if (strcmp(mode, "revoked") == 0 && round == TURN && shrunk == 0 && world_rank == 0)
      MPIX_Comm_revoke(comm);
    else
      code = one_round(comm, round);
    if (code == MPI_SUCCESS && round % 3 == 0 && strcmp(mode, "later") != 0) code = duplicated(comm, round);
    if (code == MPI_SUCCESS) code = passed_on(comm, round);
    while (has_failed(code, round)) code = recover(&comm, &round);
  }
  has_failed(MPIX_Comm_agree(comm, &flag), rounds);
  int sums[3] = {wrong, seen_failed, seen_revoked}, totals[3];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  has_failed(MPI_Allreduce(sums, totals, 3, MPI_INT, MPI_SUM, comm), rounds);
  if (rank == 0) {
    printf("%d ranks: %s\n", size, totals[0] == 0 && flag ? "right" : "wrong");
    if (shrunk) printf("shrunk, by%s%s\n", totals[1] ? " lost" : "", totals[2] ? " revoked" : "");
    fflush(stdout);
  }
  MPI_Comm_free(&comm);
  int keyval = MPI_KEYVAL_INVALID;
  if (strcmp(mode, "revoked") != 0) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  }
  MPI_Finalize();
  return wrong != 0;
}
