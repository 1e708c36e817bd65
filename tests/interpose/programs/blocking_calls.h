/* SPDX-License-Identifier: BSD-3-Clause
 * Calls in which one of the two ranks of a communicator blocks until the other one does its part. None is offloaded. */
#ifndef OFFPATH_TESTS_BLOCKING_CALLS_H
#define OFFPATH_TESTS_BLOCKING_CALLS_H

#include "persistent_names.h"

#include <stdio.h>

enum {
  IN_RECV,
  IN_PROBE,
  IN_MPROBE,
  IN_WAIT,
  IN_WAITANY,
  IN_SSEND,
  IN_SENDRECV,
  IN_TEST_LOOP,
  IN_IPROBE_LOOP,
  IN_BARRIER,
  IN_REDUCE,
  IN_COMM_DUP,
  IN_COMM_SPLIT,
  IN_WIN_FENCE,
  IN_PERSISTENT,
  IN_FILE,
  BLOCKING_CALLS
};

/* What a pair needs for them. */
struct Pair {
  MPI_Comm comm;
  MPI_Win win;
  int word, words[2];
  char file[1000];
};

static inline void make_pair(struct Pair* pair, MPI_Comm comm, const char* folder, int number) {
  MPI_Info info;
  pair->comm = comm;
  snprintf(pair->file, sizeof(pair->file), "%s/pair-%d", folder, number);
  MPI_Info_create(&info);
  MPI_Info_set(info, "offpath", "host");
  MPI_Win_create(&pair->word, sizeof(pair->word), 1, info, comm, &pair->win);
  MPI_Info_free(&info);
  MPI_Win_fence(0, pair->win);
}

static inline void free_pair(struct Pair* pair) {
  MPI_Win_free(&pair->win);
  MPI_Comm_free(&pair->comm);
}

/* Both call it; `late`: this one is not waiting. */
static inline void block_in(int call, int late, struct Pair* pair) {
  int rank, flag = 0, index, word = 0, sum;
  MPI_Request request;
  MPI_Message message;
  MPI_Status status;
  MPI_Comm made;
  MPI_File file;
  MPI_Comm_rank(pair->comm, &rank);
  const int other = 1 - rank;
  if (call < IN_SSEND || call == IN_TEST_LOOP || call == IN_IPROBE_LOOP) {
    if (late) {
      MPI_Send(&word, 1, MPI_INT, other, 9, pair->comm);
      return;
    }
    if (call == IN_PROBE) MPI_Probe(other, 9, pair->comm, &status);
    while (call == IN_IPROBE_LOOP && !flag) MPI_Iprobe(other, 9, pair->comm, &flag, &status);
    if (call == IN_MPROBE) {
      MPI_Mprobe(MPI_ANY_SOURCE, 9, pair->comm, &message, &status);
      MPI_Mrecv(&word, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    } else if (call == IN_RECV || call == IN_PROBE || call == IN_IPROBE_LOOP) {
      MPI_Recv(&word, 1, MPI_INT, other, 9, pair->comm, MPI_STATUS_IGNORE);
    } else {
      MPI_Irecv(&word, 1, MPI_INT, other, 9, pair->comm, &request);
      if (call == IN_WAITANY) MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
      while (call == IN_TEST_LOOP && !flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      if (call == IN_WAIT) MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return;
  }
  switch (call) {
    case IN_SSEND:
      if (late)
        MPI_Recv(&word, 1, MPI_INT, other, 9, pair->comm, MPI_STATUS_IGNORE);
      else
        MPI_Ssend(&word, 1, MPI_INT, other, 9, pair->comm);
      break;
    case IN_SENDRECV:
      MPI_Sendrecv(&word, 1, MPI_INT, other, 9, &sum, 1, MPI_INT, other, 9, pair->comm, MPI_STATUS_IGNORE);
      break;
    case IN_BARRIER:
      MPI_Barrier(pair->comm);
      break;
    case IN_REDUCE:
      MPI_Reduce_scatter_block(&(int[2]){word, word}, &sum, 1, MPI_INT, MPI_SUM, pair->comm);
      break;
    case IN_COMM_DUP:
      MPI_Comm_dup(pair->comm, &made);
      MPI_Comm_free(&made);
      break;
    case IN_COMM_SPLIT:
      MPI_Comm_split(pair->comm, 0, rank, &made);
      MPI_Comm_free(&made);
      break;
    case IN_WIN_FENCE:
      MPI_Win_fence(0, pair->win);
      break;
    case IN_PERSISTENT:
      INIT_OF(Alltoall)(&word, 1, MPI_INT, pair->words, 1, MPI_INT, pair->comm, MPI_INFO_NULL, &request);
      MPI_Request_free(&request);
      break;
    default:
      MPI_File_open(pair->comm, pair->file, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                    &file);
      MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof(word), &word, 1, MPI_INT, MPI_STATUS_IGNORE);
      MPI_File_close(&file);
  }
}

#endif
