/* SPDX-License-Identifier: BSD-3-Clause
 * All variables' values of a side are one message. */
#include "halo3d.h"

#include <stdlib.h>
#include <string.h>

/* The layer of points on a side: this rank's own, or the neighbour's around it. */
static int layer(const Domain* d, int side, int own) {
  const int points = d->points[side / 2];
  if (side % 2 == 0) return own ? 1 : 0;
  return own ? points : points + 1;
}

static int lines(const Domain* d, int side) { return d->points[side < LOW_Z ? 1 : 0]; }

static double* line_at(const Domain* d, int v, int side, int own, int k) {
  const int y = side < LOW_Z ? layer(d, side, own) : k + 1, z = side < LOW_Z ? k + 1 : layer(d, side, own);
  const size_t row = (size_t)d->n + 2, plane = row * ((size_t)d->points[0] + 2);
  return d->now + (plane * ((size_t)d->points[1] + 2)) * (size_t)v + plane * (size_t)z + row * (size_t)y + 1;
}

int make_exchange(Exchange* e, const Domain* d, MPI_Comm comm) {
  e->comm = comm;
  MPI_Cart_shift(comm, 0, 1, &e->peers[LOW_Y], &e->peers[HIGH_Y]);
  MPI_Cart_shift(comm, 1, 1, &e->peers[LOW_Z], &e->peers[HIGH_Z]);
  for (int side = 0; side < SIDES; ++side) {
    const size_t values = (size_t)d->n * (size_t)lines(d, side) * (size_t)d->variables;
    e->bytes[side] = (int)(values * sizeof(double));
    e->out[side] = malloc(values * sizeof(double));
    e->in[side] = malloc(values * sizeof(double));
    if (e->out[side] == NULL || e->in[side] == NULL) return -1;
  }
  return 0;
}

void free_exchange(Exchange* e) {
  for (int side = 0; side < SIDES; ++side) {
    free(e->out[side]);
    free(e->in[side]);
  }
}

void begin_exchange(Exchange* e, const Domain* d) {
  const size_t bytes = (size_t)d->n * sizeof(double);
  for (int side = 0; side < SIDES; ++side)
    MPI_Irecv(e->in[side], e->bytes[side], MPI_BYTE, e->peers[side], side, e->comm, &e->requests[side]);
  for (int side = 0; side < SIDES; ++side) {
    double* to = e->out[side];
    for (int v = 0; v < d->variables && e->peers[side] != MPI_PROC_NULL; ++v)
      for (int k = 0; k < lines(d, side); ++k, to += d->n) memcpy(to, line_at(d, v, side, 1, k), bytes);
    /* What leaves by one side comes in by the other one. */
    MPI_Isend(e->out[side], e->bytes[side], MPI_BYTE, e->peers[side], side ^ 1, e->comm, &e->requests[SIDES + side]);
  }
}

void end_exchange(Exchange* e, Domain* d) {
  const size_t bytes = (size_t)d->n * sizeof(double);
  MPI_Waitall(2 * SIDES, e->requests, MPI_STATUSES_IGNORE);
  for (int side = 0; side < SIDES; ++side) {
    const double* from = e->in[side];
    for (int v = 0; v < d->variables && e->peers[side] != MPI_PROC_NULL; ++v)
      for (int k = 0; k < lines(d, side); ++k, from += d->n) memcpy(line_at(d, v, side, 0, k), from, bytes);
  }
}
