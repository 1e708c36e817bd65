/* SPDX-License-Identifier: BSD-3-Clause
 * Single calls of more than 2 GiB, each checked against what it must give. Two ranks need about 9 GiB. */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>

static const size_t kWords = ((size_t)1 << 28) + (1 << 16); /* of 8 bytes: a little over 2 GiB */
enum { kPieceWords = 1 << 16 };

static uint64_t word_of(uint64_t owner, size_t at) { return (owner + 1) * 0x9e3779b97f4a7c15u + at; }

static uint64_t* words(size_t count) {
  uint64_t* memory = malloc(count * sizeof(uint64_t));
  if (memory != NULL) return memory;
  fprintf(stderr, "not enough memory for a call of over 2 GiB. Give the ranks about 9 GiB, or leave --huge out\n");
  MPI_Abort(MPI_COMM_WORLD, 4);
  return NULL;
}

static int status; /* of the last call, or of its completion */

static void complete(MPI_Request* request) {
  if (status == MPI_SUCCESS) status = MPI_Wait(request, MPI_STATUS_IGNORE);
}

static bool bcast_of_pieces(int rank, MPI_Datatype piece) {
  MPI_Request request;
  uint64_t* memory = words(kWords);
  for (size_t i = 0; i < kWords; ++i) memory[i] = rank == 0 ? word_of(7, i) : 0;
  status = MPI_Ibcast(memory, (int)(kWords / kPieceWords), piece, 0, MPI_COMM_WORLD, &request);
  complete(&request);
  bool right = status == MPI_SUCCESS;
  for (size_t i = 0; i < kWords && right; ++i) right = memory[i] == word_of(7, i);
  free(memory);
  return right;
}

static bool alltoall_of_pieces(int rank, int size, MPI_Datatype piece) {
  MPI_Request request;
  const size_t pieces = kWords / kPieceWords / (size_t)size, block = pieces * kPieceWords;
  uint64_t *send = words(block * (size_t)size), *recv = words(block * (size_t)size);
  for (size_t i = 0; i < block * (size_t)size; ++i) send[i] = word_of((uint64_t)rank, i);
  status = MPI_Ialltoall(send, (int)pieces, piece, recv, (int)pieces, piece, MPI_COMM_WORLD, &request);
  complete(&request);
  bool right = status == MPI_SUCCESS;
  for (size_t i = 0; i < block * (size_t)size && right; ++i)
    right = recv[i] == word_of(i / block, (size_t)rank * block + i % block);
  free(send);
  free(recv);
  return right;
}

static bool allreduce_in_place(int rank, int size) {
  MPI_Request request;
  uint64_t* memory = words(kWords);
  for (size_t i = 0; i < kWords; ++i) memory[i] = word_of((uint64_t)rank, i);
  status = MPI_Iallreduce(MPI_IN_PLACE, memory, (int)kWords, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
  complete(&request);
  bool right = status == MPI_SUCCESS;
  for (size_t i = 0; i < kWords && right; ++i) {
    uint64_t sum = 0;
    for (int r = 0; r < size; ++r) sum += word_of((uint64_t)r, i);
    right = memory[i] == sum;
  }
  free(memory);
  return right;
}

int huge_run(void) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Datatype piece;
  MPI_Type_contiguous(kPieceWords, MPI_UINT64_T, &piece);
  MPI_Type_commit(&piece);
  Report report = {0};
  bool right = bcast_of_pieces(rank, piece);
  report_add(&report, "Ibcast over 2 GiB", status, 0, right);
  right = alltoall_of_pieces(rank, size, piece);
  report_add(&report, "Ialltoall over 2 GiB", status, 0, right);
  right = allreduce_in_place(rank, size);
  report_add(&report, "Iallreduce over 2 GiB", status, 0, right);
  MPI_Type_free(&piece);
  return report_flush(&report);
}
