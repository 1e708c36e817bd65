/* SPDX-License-Identifier: BSD-3-Clause */
#include "halo3d.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kUsage[] =
    "usage: halo3d [--points N] [--variables V] [--sweeps S] [--tiles N] [--blocking] [--field FILE]\n"
    "  --points N     points of the cube in each direction (default 96)\n"
    "  --variables V  that are solved for at a time (default 4)\n"
    "  --sweeps S     of Jacobi's method (default 50)\n"
    "  --tiles N      sweeps a message, which has N layers; points near the edges are computed twice (default 1)\n"
    "  --blocking     exchange first, then sweep: nothing overlaps\n"
    "  --field FILE   rank 0 writes its values there, as doubles\n";

static int number_after(int argc, char** argv, int* i) {
  const int value = *i + 1 < argc ? atoi(argv[*i + 1]) : 0;
  ++*i;
  return value;
}

int main(int argc, char** argv) {
  int points = 96, variables = 4, sweeps = 50, tiles = 1, blocking = 0, rank, size, good = 1;
  int cut[2] = {0, 0}, place[2], whole[2] = {0, 0};
  const char* field = NULL;
  MPI_Comm comm;
  Domain domain;
  Exchange exchange;
  MPI_Init(&argc, &argv);
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--points") == 0)
      points = number_after(argc, argv, &i);
    else if (strcmp(argv[i], "--variables") == 0)
      variables = number_after(argc, argv, &i);
    else if (strcmp(argv[i], "--sweeps") == 0)
      sweeps = number_after(argc, argv, &i);
    else if (strcmp(argv[i], "--tiles") == 0)
      tiles = number_after(argc, argv, &i);
    else if (strcmp(argv[i], "--blocking") == 0)
      blocking = 1;
    else if (strcmp(argv[i], "--field") == 0 && i + 1 < argc)
      field = argv[++i];
    else
      good = 0;
  }
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, cut);
  MPI_Cart_create(MPI_COMM_WORLD, 2, cut, whole, 0, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Cart_coords(comm, rank, 2, place);
  const int least = tiles > 3 ? tiles : 3; /* points of a rank: what a neighbour gets is its own */
  if (!good || variables < 1 || sweeps < 1 || tiles < 1 || points / cut[0] < least || points / cut[1] < least) {
    if (rank == 0) fputs(kUsage, stderr);
    MPI_Finalize();
    return 2;
  }
  if (make_domain(&domain, points, variables, tiles, cut, place) != 0 || make_exchange(&exchange, &domain, comm) != 0) {
    fprintf(stderr, "halo3d: rank %d has no memory for %d points and %d variables. Give less\n", rank, points,
            variables);
    MPI_Abort(comm, 1);
  }
  start_values(&domain);
  double waited = 0, most = 0, longest, longest_wait;
  MPI_Barrier(comm);
  const double begin = MPI_Wtime();
  for (int sweep = 0; sweep < sweeps; sweep += tiles) {
    const int together = sweeps - sweep < tiles ? sweeps - sweep : tiles;
    begin_exchange(&exchange, &domain);
    if (!blocking) sweep_inner(&domain, together);
    const double arrived = MPI_Wtime();
    end_exchange(&exchange, &domain);
    const double took = MPI_Wtime() - arrived;
    waited += took;
    if (took > most) most = took;
    if (blocking) sweep_inner(&domain, together);
    sweep_outer(&domain, together);
  }
  double taken = MPI_Wtime() - begin, distance = distance_from_solution(&domain, sweeps), farthest;
  MPI_Reduce(&distance, &farthest, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
  MPI_Reduce(&taken, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
  MPI_Reduce(&most, &longest_wait, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
  uint64_t bits = bits_of(&domain), all_bits = 0;
  MPI_Reduce(&bits, &all_bits, 1, MPI_UINT64_T, MPI_SUM, 0, comm);
  const int right = farthest < 1e-9;
  if (rank == 0) {
    printf("sweep_ms %.3f\nwaited_ms %.3f\nside_bytes %d\n", longest / sweeps * 1e3, waited / sweeps * 1e3,
           exchange.bytes[0]);
    printf("bits %016" PRIx64 "\nlongest wait: %.4f s\nverified: %s\n", all_bits, longest_wait, right ? "yes" : "NO");
    if (!right) fprintf(stderr, "halo3d: %g from the known solution\n", farthest);
  }
  if (rank == 0 && field != NULL && write_values(&domain, field) != 0) {
    fprintf(stderr, "halo3d: '%s' was not written. Give --field a file in a folder you may write\n", field);
    MPI_Abort(comm, 1);
  }
  free_exchange(&exchange);
  free_domain(&domain);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return rank == 0 && !right;
}
