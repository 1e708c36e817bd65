/* SPDX-License-Identifier: BSD-3-Clause
 * Neighbourhoods where several edges lead from one rank to the same other, or nowhere: prints what every rank received,
 * which must be what the native library delivers. */
#include "check.h"

enum { MAX = 8 };

static void exchange(const char* name, MPI_Comm comm, int in_degree, int out_degree, int function) {
  static const char* const functions[] = {"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"};
  int rank, size, send[2 * MAX], recv[2 * MAX], counts[MAX], displs[MAX];
  MPI_Aint places[MAX];
  MPI_Datatype types[MAX];
  MPI_Request request;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < MAX; ++i) {
    counts[i] = 2, displs[i] = 2 * i, places[i] = displs[i] * (MPI_Aint)sizeof(int), types[i] = MPI_INT;
    send[2 * i] = 100 * rank + i, send[2 * i + 1] = -send[2 * i], recv[2 * i] = recv[2 * i + 1] = 7777;
  }
  switch (function) {
    case 0:
      MPI_Ineighbor_allgather(send, 2, MPI_INT, recv, 2, MPI_INT, comm, &request);
      break;
    case 1:
      MPI_Ineighbor_allgatherv(send, 2, MPI_INT, recv, counts, displs, MPI_INT, comm, &request);
      break;
    case 2:
      MPI_Ineighbor_alltoall(send, 2, MPI_INT, recv, 2, MPI_INT, comm, &request);
      break;
    case 3:
      MPI_Ineighbor_alltoallv(send, counts, displs, MPI_INT, recv, counts, displs, MPI_INT, comm, &request);
      break;
    default:
      MPI_Ineighbor_alltoallw(send, counts, places, types, recv, counts, places, types, comm, &request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  int* all = malloc(sizeof(int) * 2 * MAX * (size_t)size);
  MPI_Gather(recv, 2 * MAX, MPI_INT, all, 2 * MAX, MPI_INT, 0, comm);
  for (int r = 0; rank == 0 && r < size; ++r) {
    printf("%s of %d and %d, %s, rank %d:", name, in_degree, out_degree, functions[function], r);
    for (int i = 0; i < 2 * MAX; i += 2) printf(" %d%s", all[2 * MAX * r + i], all[2 * MAX * r + i + 1] < 0 ? "-" : "");
    printf("\n");
  }
  free(all);
}

static void all_functions(const char* name, MPI_Comm comm, int in_degree, int out_degree) {
  for (int function = 0; function < 5 && comm != MPI_COMM_NULL; ++function)
    exchange(name, comm, in_degree, out_degree, function);
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm comm;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int sizes[3] = {size, 1, 1}, rings[3] = {1, 1, 0}, open_ends[3] = {0, 0, 0};
  MPI_Cart_create(MPI_COMM_WORLD, 3, sizes, rings, 0, &comm);
  all_functions("torus", comm, 6, 6);
  MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, open_ends, 0, &comm);
  all_functions("line", comm, 2, 2);
  /* each rank has two edges to itself, two to the next and two to the one before */
  int *index = malloc(sizeof(int) * (size_t)size * 7), *edges = index + size;
  for (int r = 0; r < size; ++r) {
    const int before = (r + size - 1) % size, after = (r + 1) % size;
    const int own[6] = {after, r, before, after, r, before};
    memcpy(edges + 6 * r, own, sizeof(own));
    index[r] = 6 * (r + 1);
  }
  MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm);
  all_functions("graph", comm, 6, 6);
  /* everybody twice to the next and once to rank 0; rank 0 has more sources than destinations */
  int destinations[3] = {(rank + 1) % size, 0, (rank + 1) % size}, weights[MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
  int sources[MAX], count = 0;
  sources[count++] = (rank + size - 1) % size;
  sources[count++] = (rank + size - 1) % size;
  for (int r = 0; rank == 0 && r < size && count < MAX; ++r) sources[count++] = r;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, count, sources, weights, 3, destinations, weights, MPI_INFO_NULL, 0,
                                 &comm);
#ifdef OPEN_MPI
  all_functions("adjacent", comm, count, 3);
#else /* MPICH's own alltoallw fails where a rank has more sources than destinations, or the other way round */
  for (int function = 0; function < 4; ++function) exchange("adjacent", comm, count, 3, function);
  MPI_Comm_free(&comm);
#endif
  free(index);
  return finish();
}
