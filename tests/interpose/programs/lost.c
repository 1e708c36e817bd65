/* SPDX-License-Identifier: BSD-3-Clause
 * What a program sees when a service is lost: arguments "idle" or "busy", and what it is doing (see kinds). With errors
 * returned, every operation ends, as right data or as an error of a class of Offpath's own with a text that names it,
 * and the program goes on. */
#include "persistent_names.h"
#include "world.h"

#include <stdio.h>

enum { OPS = 8 };

static const char* const kinds[] = {"alltoall", "in_place", "allreduce", "bcast", "neighbor", "persistent", "pairs"};
enum { ALLTOALL, IN_PLACE, ALLREDUCE, BCAST, NEIGHBOR, PERSISTENT, PAIRS };

static int kind, count, *send[OPS], *recv[OPS];
static MPI_Comm comm;
static MPI_Request requests[OPS];

/* Pairs: long blocks between one rank and the next, short ones between all others. */
static int amount(int k, int from, int to) {
  const int first = k % size, second = (k + 1) % size;
  return (from == first && to == second) || (from == second && to == first) ? count : count / 10;
}

static int post(int k) {
  const int all = count * size;
  static int counts[OPS][16], displs[16];
  for (int r = 0; r < size; ++r) counts[k][r] = amount(k, rank, r), displs[r] = r * count;
  switch (kind) {
    case IN_PLACE:
      return MPI_Ialltoall(MPI_IN_PLACE, count, MPI_INT, recv[k], count, MPI_INT, comm, &requests[k]);
    case ALLREDUCE:
      return MPI_Iallreduce(MPI_IN_PLACE, recv[k], all, MPI_INT, MPI_BXOR, comm, &requests[k]);
    case BCAST:
      return MPI_Ibcast(recv[k], all, MPI_INT, k % size, comm, &requests[k]);
    case NEIGHBOR:
      return MPI_Ineighbor_alltoall(send[k], count, MPI_INT, recv[k], count, MPI_INT, comm, &requests[k]);
    case PERSISTENT:
      return MPI_Start(&requests[k]);
    case PAIRS:
      return MPI_Ialltoallv(send[k], counts[k], displs, MPI_INT, recv[k], counts[k], displs, MPI_INT, comm,
                            &requests[k]);
    default:
      return MPI_Ialltoall(send[k], count, MPI_INT, recv[k], count, MPI_INT, comm, &requests[k]);
  }
}

static int expected(int k, int i, int id) {
  const int block = i / count, at = i % count;
  int bits = 0;
  switch (kind) {
    case ALLREDUCE:
    case PERSISTENT:
      for (int r = 0; r < size; ++r) bits ^= value_of(r, block, at, id);
      return bits;
    case BCAST:
      return value_of(k % size, block, at, id);
    case NEIGHBOR: /* the block for the other side, of the rank on this side; nothing else */
      return block < 2 ? value_of((rank + size + (block == 0 ? -1 : 1)) % size, 1 - block, at, id) : -1;
    case PAIRS:
      return at < amount(k, block, rank) ? value_of(block, rank, at, id) : -1;
    default:
      return value_of(block, rank, at, id);
  }
}

int main(int argc, char** argv) {
  int ok = 1, failed = 0, right_count = 0;
  enter(&argc, &argv);
  const int busy = argc > 1 && strcmp(argv[1], "busy") == 0;
  while (argc > 2 && strcmp(argv[2], kinds[kind]) != 0) ++kind;
  count = busy ? 1 << 20 : 1000;
  const int ring = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &comm);
  MPI_Comm_set_name(comm, "transposer");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int k = 0; k < OPS; ++k) {
    send[k] = malloc(sizeof(int) * (size_t)count * (size_t)size);
    recv[k] = malloc(sizeof(int) * (size_t)count * (size_t)size);
    if (kind == PERSISTENT)
      INIT_OF(Allreduce)(send[k], recv[k], count * size, MPI_INT, MPI_BXOR, comm, MPI_INFO_NULL, &requests[k]);
  }
  for (int round = 0; round < 3; ++round) {
    for (int k = 0; k < OPS; ++k)
      for (int i = 0; i < count * size; ++i) {
        send[k][i] = value_of(rank, i / count, i % count, 10 * round + k);
        recv[k][i] = kind == NEIGHBOR || kind == PAIRS ? -1 : send[k][i];
      }
    if (round == 1 && !busy) let_the_driver_kill();
    for (int k = 0; k < OPS; ++k) {
      const int code = post(k);
      if (code != MPI_SUCCESS) fprintf(stderr, "rank %d: the call itself failed\n", rank), ok = 0;
    }
    if (round == 1 && busy) let_the_driver_kill();
    for (int k = 0; k < OPS; ++k) {
      MPI_Status status;
      int code = MPI_SUCCESS;
      if (k % 2 == 0) {
        code = MPI_Wait(&requests[k], &status);
      } else {
        code = MPI_Waitall(1, &requests[k], &status);
        if (class_of(code) == MPI_ERR_IN_STATUS) code = status.MPI_ERROR;
      }
      ok &= (requests[k] == MPI_REQUEST_NULL) != (kind == PERSISTENT);
      if (code == MPI_SUCCESS) {
        ++right_count;
        for (int i = 0; i < count * size; ++i)
          if (recv[k][i] != expected(k, i, 10 * round + k)) {
            fprintf(stderr, "rank %d: round %d operation %d has wrong data\n", rank, round, k);
            ok = 0;
            break;
          }
      } else {
        ++failed;
        ok &= is_offpaths(code) && (busy || round > 0);
        if (getenv("LOST_SHOW") != NULL) fprintf(stderr, "rank %d: %s\n", rank, error_words(code));
      }
    }
    if (kind == PAIRS) { /* who has short blocks only may be here already, and must answer the others */
      MPI_Request barrier;
      MPI_Ibarrier(comm, &barrier);
      MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int sums[2] = {failed, right_count}, totals[2];
  MPI_Allreduce(sums, totals, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("failed %d, right %d of %d\n", totals[0], totals[1], 3 * OPS * size);
  for (int k = 0; kind == PERSISTENT && k < OPS; ++k) MPI_Request_free(&requests[k]);
  MPI_Comm_free(&comm);
  report("after the loss", ok);
  return finish();
}
