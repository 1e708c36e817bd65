/* SPDX-License-Identifier: BSD-3-Clause
 * Ialltoall and Ialltoallv: counts, in place, datatypes, communicators, many under way at once. */
#include "check.h"

#include <stddef.h>

static int alltoall(MPI_Comm comm, int count, int in_place, int round) {
  int rank, size, ok = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int* send = malloc(sizeof(int) * (size_t)(count * size + 1));
  int* recv = malloc(sizeof(int) * (size_t)(count * size + 1));
  int* from = in_place ? recv : send;
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < count; ++i) from[p * count + i] = value_of(rank, p, i, round);
  recv[count * size] = 77;
  MPI_Request request;
  MPI_Ialltoall(in_place ? MPI_IN_PLACE : send, count, MPI_INT, recv, count, MPI_INT, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < count; ++i) ok &= recv[p * count + i] == value_of(p, rank, i, round);
  ok &= recv[count * size] == 77 && request == MPI_REQUEST_NULL;
  free(send);
  free(recv);
  return ok;
}

/* How much `from` sends to `to`: uneven, with zeros, symmetric when asked (in place needs that). */
static int amount(int from, int to, int scale, int symmetric) {
  if (symmetric && from > to) return amount(to, from, scale, symmetric);
  return ((from * 3 + to * 5) % 4) * scale;
}

static int alltoallv(MPI_Comm comm, int scale, int in_place, int round) {
  int rank, size, ok = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int *n = malloc(sizeof(int) * (size_t)size * 4), *sc = n, *sd = n + size, *rc = n + 2 * size, *rd = n + 3 * size;
  int send_total = 0, recv_total = 3; /* a gap first, and blocks of the receive buffer in reverse order */
  for (int p = 0; p < size; ++p) {
    sc[p] = amount(rank, p, scale, in_place);
    sd[p] = send_total;
    send_total += sc[p] + 1;
  }
  for (int p = size - 1; p >= 0; --p) {
    rc[p] = amount(p, rank, scale, in_place);
    rd[p] = recv_total;
    recv_total += rc[p] + 2;
  }
  int* send = malloc(sizeof(int) * (size_t)(send_total + 1));
  int* recv = malloc(sizeof(int) * (size_t)recv_total);
  for (int i = 0; i < recv_total; ++i) recv[i] = -1;
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < sc[p]; ++i) {
      if (in_place)
        recv[rd[p] + i] = value_of(rank, p, i, round);
      else
        send[sd[p] + i] = value_of(rank, p, i, round);
    }
  MPI_Request request;
  if (in_place)
    MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, recv, rc, rd, MPI_INT, comm, &request);
  else
    MPI_Ialltoallv(send, sc, sd, MPI_INT, recv, rc, rd, MPI_INT, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  int touched = 0;
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < rc[p]; ++i, ++touched) ok &= recv[rd[p] + i] == value_of(p, rank, i, round);
  for (int i = 0; i < recv_total; ++i) touched += recv[i] == -1;
  ok &= touched == recv_total; /* the gaps are as they were */
  free(n);
  free(send);
  free(recv);
  return ok;
}

/* Sends columns (vector, resized), receives rows; the other way round; structs with holes; absolute addresses. */
static int datatypes(MPI_Comm comm, int send_columns, int recv_columns, int free_early) {
  enum { N = 37 };
  int rank, size, ok = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int *send = malloc(sizeof(int) * (size_t)(N * size)), *recv = malloc(sizeof(int) * (size_t)(N * size));
  MPI_Datatype vector, column;
  MPI_Type_vector(N, 1, size, MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, sizeof(int), &column);
  MPI_Type_commit(&column);
  MPI_Type_free(&vector);
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < N; ++i) send[send_columns ? i * size + p : p * N + i] = value_of(rank, p, i, 5);
  MPI_Request request;
  MPI_Ialltoall(send, send_columns ? 1 : N, send_columns ? column : MPI_INT, recv, recv_columns ? 1 : N,
                recv_columns ? column : MPI_INT, comm, &request);
  if (free_early) MPI_Type_free(&column);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < N; ++i) ok &= recv[recv_columns ? i * size + p : p * N + i] == value_of(p, rank, i, 5);
  if (!free_early) MPI_Type_free(&column);
  free(send);
  free(recv);
  return ok;
}

static int columns_in_place(MPI_Comm comm) {
  enum { N = 11 };
  int rank, size, ok = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int* data = malloc(sizeof(int) * (size_t)(N * size));
  MPI_Datatype vector, column;
  MPI_Type_vector(N, 1, size, MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, sizeof(int), &column);
  MPI_Type_commit(&column);
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < N; ++i) data[i * size + p] = value_of(rank, p, i, 6);
  MPI_Request request;
  MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 1, column, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < N; ++i) ok &= data[i * size + p] == value_of(p, rank, i, 6);
  MPI_Type_free(&vector);
  MPI_Type_free(&column);
  free(data);
  return ok;
}

struct holed {
  char tag;
  double value;
};

static int holes_and_order(MPI_Comm comm) {
  int rank, size, ok = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  struct holed *send = calloc((size_t)size, sizeof(*send)), *recv = calloc((size_t)size, sizeof(*recv));
  MPI_Datatype holed, swapped;
  MPI_Aint at[2] = {offsetof(struct holed, tag), offsetof(struct holed, value)};
  MPI_Datatype parts[2] = {MPI_CHAR, MPI_DOUBLE};
  int ones[2] = {1, 1}, reverse[2] = {1, 0};
  MPI_Type_create_struct(2, ones, at, parts, &holed);
  MPI_Type_commit(&holed);
  /* as long as its extent, yet not in memory order */
  MPI_Type_indexed(2, ones, reverse, MPI_INT, &swapped);
  MPI_Type_commit(&swapped);
  for (int p = 0; p < size; ++p) {
    send[p].tag = (char)(rank + p);
    send[p].value = value_of(rank, p, 0, 1);
    recv[p].tag = 99;
  }
  int *pairs = malloc(sizeof(int) * (size_t)size * 4), *got = pairs + 2 * size;
  for (int i = 0; i < 2 * size; ++i) pairs[i] = value_of(rank, i / 2, i % 2, 2);
  int *counts = malloc(sizeof(int) * (size_t)size * 2), *displs = counts + size;
  for (int p = 0; p < size; ++p) {
    counts[p] = 1;
    displs[p] = p;
  }
  MPI_Request requests[2];
  MPI_Ialltoallv(send, counts, displs, holed, recv, counts, displs, holed, comm, &requests[0]);
  MPI_Ialltoall(pairs, 1, swapped, got, 2, MPI_INT, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int p = 0; p < size; ++p) {
    ok &= recv[p].tag == (char)(rank + p) && recv[p].value == value_of(p, rank, 0, 1);
    ok &= got[2 * p] == value_of(p, rank, 1, 2) && got[2 * p + 1] == value_of(p, rank, 0, 2);
  }
  /* the same from MPI_BOTTOM */
  MPI_Datatype absolute;
  MPI_Aint address;
  MPI_Get_address(pairs, &address);
  int length = 2;
  MPI_Datatype type = MPI_INT;
  MPI_Type_create_struct(1, &length, &address, &type, &absolute);
  MPI_Type_commit(&absolute);
  memset(got, 0, sizeof(int) * (size_t)size * 2);
  MPI_Request request;
  MPI_Ialltoall(MPI_BOTTOM, 1, absolute, got, 2, MPI_INT, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < 2 * size; ++i) ok &= got[i] == value_of(i / 2, rank, i % 2, 2);
  MPI_Type_free(&absolute);
  MPI_Type_free(&holed);
  MPI_Type_free(&swapped);
  free(send);
  free(recv);
  free(pairs);
  free(counts);
  return ok;
}

/* Operations on three communicators, completed in an order that differs between the ranks. */
static int many_under_way(MPI_Comm* comms, int comm_count, int per_comm) {
  enum { COUNT = 501 };
  int world, total = comm_count * per_comm, ok = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  MPI_Request* requests = malloc(sizeof(MPI_Request) * (size_t)total);
  int **send = malloc(sizeof(int*) * (size_t)total), **recv = malloc(sizeof(int*) * (size_t)total);
  for (int step = 0; step < total; ++step) {
    /* each rank walks the communicators from another one on; the order within one is the same everywhere */
    int c = (step / per_comm + world) % comm_count, k = step % per_comm, id = c * per_comm + k, rank, size;
    MPI_Comm_rank(comms[c], &rank);
    MPI_Comm_size(comms[c], &size);
    send[id] = malloc(sizeof(int) * COUNT * (size_t)size);
    recv[id] = calloc((size_t)size * COUNT, sizeof(int));
    for (int i = 0; i < COUNT * size; ++i) send[id][i] = value_of(rank, i / COUNT, i % COUNT, id);
    MPI_Ialltoall(send[id], COUNT, MPI_INT, recv[id], COUNT, MPI_INT, comms[c], &requests[id]);
  }
  for (int step = 0; step < total; ++step) {
    int id = world % 2 == 0 ? step : total - 1 - step;
    if (step % 3 == 0) {
      for (int flag = 0; !flag;) MPI_Test(&requests[id], &flag, MPI_STATUS_IGNORE);
    } else {
      MPI_Wait(&requests[id], MPI_STATUS_IGNORE);
    }
    int rank, size;
    MPI_Comm_rank(comms[id / per_comm], &rank);
    MPI_Comm_size(comms[id / per_comm], &size);
    for (int i = 0; i < COUNT * size; ++i) ok &= recv[id][i] == value_of(i / COUNT, rank, i % COUNT, id);
    free(send[id]);
    free(recv[id]);
  }
  free(requests);
  free(send);
  free(recv);
  return ok;
}

static void sweep(const char* name, MPI_Comm comm) {
  static const int counts[] = {0, 1, 1023, 70001};
  char label[80];
  int ok = 1, okv = 1;
  for (int i = 0; i < 8 && comm != MPI_COMM_NULL; ++i) {
    ok &= alltoall(comm, counts[i % 4], i / 4, i);
    okv &= alltoallv(comm, counts[i % 4], i / 4, i);
  }
  snprintf(label, sizeof(label), "alltoall on %s", name);
  report(label, ok);
  snprintf(label, sizeof(label), "alltoallv on %s", name);
  report(label, okv);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm dup, split, created, grouped, node, cart, reversed;
  MPI_Group world_group, some;
  sweep("world", MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  sweep("dup", dup);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &split);
  sweep("split", split);
  MPI_Comm_group(MPI_COMM_WORLD, &world_group);
  int ranges[1][3] = {{0, size > 2 ? size - 2 : size - 1, 1}};
  MPI_Group_range_incl(world_group, 1, ranges, &some);
  MPI_Comm_create(MPI_COMM_WORLD, some, &created);
  sweep("create", created);
  grouped = MPI_COMM_NULL;
  if (created != MPI_COMM_NULL) MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, &grouped);
  sweep("create_group", grouped);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  sweep("split_type", node);
  int dims[1] = {size}, periods[1] = {1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart);
  sweep("cart_create", cart);
  MPI_Comm_split(dup, 0, -rank, &reversed);
  sweep("split of dup, ranks reversed", reversed);
  sweep("self", MPI_COMM_SELF);

  report("columns to rows", datatypes(MPI_COMM_WORLD, 1, 0, 0));
  report("rows to columns", datatypes(MPI_COMM_WORLD, 0, 1, 0));
  report("columns to columns, type freed early", datatypes(dup, 1, 1, 1));
  report("columns on odd, rows on even ranks", datatypes(dup, rank % 2, 1 - rank % 2, 0));
  report("columns in place", columns_in_place(dup));
  report("holes and order", holes_and_order(dup));
  MPI_Comm comms[3] = {MPI_COMM_WORLD, dup, reversed};
  report("many under way", many_under_way(comms, 3, 40));

  MPI_Comm_free(&dup);
  MPI_Comm_free(&split);
  if (created != MPI_COMM_NULL) MPI_Comm_free(&created);
  if (grouped != MPI_COMM_NULL) MPI_Comm_free(&grouped);
  MPI_Comm_free(&node);
  MPI_Comm_free(&cart);
  MPI_Comm_free(&reversed);
  MPI_Group_free(&some);
  MPI_Group_free(&world_group);
  int ok = 1;
  for (int i = 0; i < 20; ++i) { /* handles are used again */
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    ok &= alltoall(dup, 100 + i, i % 2, i);
    MPI_Comm_free(&dup);
  }
  report("communicators made and freed", ok);
  return finish();
}
