/* SPDX-License-Identifier: BSD-3-Clause
 * A random program, the same on all ranks, whose service is killed at some moment: collectives and messages under way, for
 * which one rank waits while the others block in another call until it has. Argument: a seed. It says that it is ready and
 * goes on; some steps after LOST_GO is there it ends, and what it does then has to be right. */
#include "check.h"

#include <unistd.h>

enum Kind { ALLTOALL, ALLREDUCE, BCAST, SEND, SYNCHRONOUS_SEND, LATE_RECEIVE, KINDS };
enum { SLOTS = 5, MOST = 60000, AFTER = 12, TAG = 100 };

static int rank, size, wrong, failed;
static unsigned state;
static double longest;
static struct Slot {
  MPI_Request request, sent;
  enum Kind kind;
  int count, id, used;
  MPI_Comm comm;
  int *send, *recv;
} slots[SLOTS];

static int draw(int below) {
  state = state * 1103515245u + 12345u;
  return (int)(state >> 16) % below;
}

/* Pairs of long ranges; some are not there natively. */
static int send_to(struct Slot* slot, int to, int all) {
  MPI_Datatype type = MPI_INT;
  const int halves = slot->id % 3 == 0 && all % 2 == 0;
  if (halves) MPI_Type_vector(2, all / 2, all / 2, MPI_INT, &type), MPI_Type_commit(&type);
  const int code = (slot->kind == SYNCHRONOUS_SEND ? MPI_Issend : MPI_Isend)(slot->send, halves ? 1 : all, type, to,
                                                                             TAG + slot->id, slot->comm, &slot->sent);
  if (halves) MPI_Type_free(&type);
  return code;
}

static int left_of(const struct Slot* slot) { return (rank + slot->id) % size; }

static void post(struct Slot* slot, MPI_Comm comm) {
  static const int counts[] = {1, 300, 5000, MOST};
  static int ids;
  slot->comm = comm, slot->used = 1, slot->kind = (enum Kind)draw(KINDS), slot->count = counts[draw(4)],
  slot->id = ++ids;
  const int all = slot->count * size, root = slot->id % size;
  for (int i = 0; i < all; ++i)
    slot->send[i] = value_of(rank, i / slot->count, i % slot->count, slot->id), slot->recv[i] = -1;
  if (slot->kind == BCAST && rank == root) memcpy(slot->recv, slot->send, sizeof(int) * (size_t)all);
  int code = MPI_SUCCESS;
  if (slot->kind == ALLTOALL)
    code = MPI_Ialltoall(slot->send, slot->count, MPI_INT, slot->recv, slot->count, MPI_INT, comm, &slot->request);
  else if (slot->kind == ALLREDUCE)
    code = MPI_Iallreduce(slot->send, slot->recv, all, MPI_INT, MPI_BXOR, comm, &slot->request);
  else if (slot->kind == BCAST)
    code = MPI_Ibcast(slot->recv, all, MPI_INT, root, comm, &slot->request);
  else if (slot->kind != LATE_RECEIVE)
    code = MPI_Irecv(slot->recv, all, MPI_INT, left_of(slot), TAG + slot->id, slot->comm, &slot->request);
  if (code == MPI_SUCCESS && slot->kind >= SEND) code = send_to(slot, (rank + size - slot->id % size) % size, all);
  if (code != MPI_SUCCESS) ++failed, slot->request = MPI_REQUEST_NULL;
}

static int expected(const struct Slot* slot, int i) {
  const int block = i / slot->count, at = i % slot->count;
  int bits = 0;
  if (slot->kind >= SEND) return value_of(left_of(slot), block, at, slot->id);
  if (slot->kind == ALLTOALL) return value_of(block, rank, at, slot->id);
  if (slot->kind == BCAST) return value_of(slot->id % size, block, at, slot->id);
  for (int r = 0; r < size; ++r) bits ^= value_of(r, block, at, slot->id);
  return bits;
}

static int late_receive(struct Slot* slot) {
  const int all = slot->count * size;
  MPI_Status status;
  int count = 0, code = MPI_Probe(left_of(slot), TAG + slot->id, slot->comm, &status);
  if (code != MPI_SUCCESS) return code;
  MPI_Get_count(&status, MPI_INT, &count);
  wrong += count != all;
  return MPI_Recv(slot->recv, all, MPI_INT, left_of(slot), TAG + slot->id, slot->comm, MPI_STATUS_IGNORE);
}

static void wait_for(struct Slot* slot, int by_tests) {
  int code = MPI_SUCCESS;
  const double begin = MPI_Wtime();
  if (slot->kind == LATE_RECEIVE) {
    code = late_receive(slot);
  } else if (by_tests) {
    for (int done = 0; !done && code == MPI_SUCCESS;) code = MPI_Test(&slot->request, &done, MPI_STATUS_IGNORE);
  } else {
    code = MPI_Wait(&slot->request, MPI_STATUS_IGNORE);
  }
  if (code == MPI_SUCCESS && slot->kind != LATE_RECEIVE) code = MPI_Wait(&slot->sent, MPI_STATUS_IGNORE);
  if (MPI_Wtime() - begin > longest) longest = MPI_Wtime() - begin;
  if (code == MPI_SUCCESS) {
    for (int i = 0; i < slot->count * size; ++i)
      if (slot->recv[i] != expected(slot, i)) {
        ++wrong;
        break;
      }
    return;
  }
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  if (strncmp(text, "Offpath: ", 9) != 0 || strstr(text, "in time") != NULL) fprintf(stderr, "%s\n", text), ++wrong;
  ++failed;
}

/* One waits, the others block in another call until it has. */
static void uneven(struct Slot* slot, MPI_Comm comm) {
  const int first = draw(size), call = draw(5), by_tests = draw(2);
  int word = 0, sum;
  int ones[64];
  MPI_Comm made;
  for (int i = 0; i < size; ++i) ones[i] = 1;
  if (rank == first) wait_for(slot, by_tests);
  const double begin = MPI_Wtime();
  if (call < 2 && rank == first) {
    for (int r = 0; r < size; ++r)
      if (r != rank) MPI_Send(&word, 1, MPI_INT, r, 3, comm);
  } else if (call < 2) {
    if (call == 1) MPI_Probe(first, 3, comm, MPI_STATUS_IGNORE);
    MPI_Recv(&word, 1, MPI_INT, first, 3, comm, MPI_STATUS_IGNORE);
  } else if (call == 2) {
    MPI_Barrier(comm);
  } else if (call == 3) {
    MPI_Reduce_scatter(ones, &sum, ones, MPI_INT, MPI_SUM, comm);
  } else {
    MPI_Comm_split(comm, 0, rank, &made);
    MPI_Comm_free(&made);
  }
  if (MPI_Wtime() - begin > longest) longest = MPI_Wtime() - begin;
  if (rank != first) wait_for(slot, by_tests);
  if (MPI_Wait(&slot->sent, MPI_STATUS_IGNORE) != MPI_SUCCESS) ++failed;
  slot->used = 0;
}

int main(int argc, char** argv) {
  MPI_Comm comms[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  state = (unsigned)atoi(argv[1]);
  for (int c = 0; c < 2; ++c) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
    MPI_Comm_set_errhandler(comms[c], MPI_ERRORS_RETURN);
  }
  for (int i = 0; i < SLOTS; ++i) {
    slots[i].request = slots[i].sent = MPI_REQUEST_NULL;
    slots[i].send = malloc(sizeof(int) * MOST * (size_t)size);
    slots[i].recv = malloc(sizeof(int) * MOST * (size_t)size);
  }
  for (int step = 0, left = AFTER; left > 0; ++step) {
    struct Slot* slot = &slots[draw(SLOTS)];
    MPI_Comm comm = comms[draw(2)];
    if (!slot->used) {
      post(slot, comm);
    } else {
      uneven(slot, comm);
    }
    if (step == 10 && rank == 0) fclose(fopen(getenv("LOST_READY"), "w"));
    int gone = access(getenv("LOST_GO"), F_OK) == 0;
    if (step % 4 == 0) MPI_Bcast(&gone, 1, MPI_INT, 0, MPI_COMM_WORLD), left -= gone;
  }
  for (int i = 0; i < SLOTS; ++i)
    if (slots[i].used) wait_for(&slots[i], 0), MPI_Wait(&slots[i].sent, MPI_STATUS_IGNORE);
  const int failed_before = failed;
  for (int i = 0; i < SLOTS; ++i) post(&slots[i], comms[i % 2]), uneven(&slots[i], comms[1 - i % 2]);
  wrong += failed - failed_before;
  double all;
  int total;
  MPI_Reduce(&longest, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&failed_before, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("failed %d, longest wait %.3f s\n", total, all);
  report("after the loss", wrong == 0);
  for (int c = 0; c < 2; ++c) MPI_Comm_free(&comms[c]);
  return finish();
}
