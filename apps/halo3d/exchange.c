/* SPDX-License-Identifier: BSD-3-Clause
 * All variables' values of a side are one message. */
#include "halo3d.h"

#include <stdlib.h>
#include <string.h>

const int kAway[NEIGHBOURS][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}, {-1, -1}, {1, 1}, {-1, 1}, {1, -1}};

/* The first layer in direction i that this rank has for a neighbour, or gets from it, and how many there are. */
static int first_layer(const Domain* d, int neighbour, int i, int own) {
  const int away = kAway[neighbour][i], points = d->points[i], depth = d->depth;
  if (away < 0) return own ? 1 : 1 - depth;
  if (away > 0) return own ? points - depth + 1 : points + 1;
  return 1;
}
static int layers(const Domain* d, int neighbour, int i) { return kAway[neighbour][i] == 0 ? d->points[i] : d->depth; }

int make_exchange(Exchange* e, const Domain* d, MPI_Comm comm) {
  int cut[2], cyclic[2], place[2];
  MPI_Cart_get(comm, 2, cut, cyclic, place);
  e->comm = comm;
  e->count = d->depth > 1 ? NEIGHBOURS : SIDES;
  for (int k = 0; k < e->count; ++k) {
    const int y = kAway[k][0], z = kAway[k][1];
    const int there = (y == 0 || (y < 0 ? d->low[0] : d->high[0])) && (z == 0 || (z < 0 ? d->low[1] : d->high[1]));
    const int at[2] = {place[0] + y, place[1] + z};
    const size_t values = (size_t)d->n * (size_t)layers(d, k, 0) * (size_t)layers(d, k, 1) * (size_t)d->variables;
    e->peers[k] = MPI_PROC_NULL;
    if (there) MPI_Cart_rank(comm, at, &e->peers[k]);
    e->bytes[k] = (int)(values * sizeof(double));
    e->out[k] = malloc(values * sizeof(double));
    e->in[k] = malloc(values * sizeof(double));
    if (e->out[k] == NULL || e->in[k] == NULL) return -1;
  }
  return 0;
}

void free_exchange(Exchange* e) {
  for (int k = 0; k < e->count; ++k) {
    free(e->out[k]);
    free(e->in[k]);
  }
}

/* Each line of what is sent to a neighbour, or comes from there. */
static void copy_lines(const Domain* d, int neighbour, int own, double* message) {
  const size_t bytes = (size_t)d->n * sizeof(double);
  const int y = first_layer(d, neighbour, 0, own), z = first_layer(d, neighbour, 1, own);
  for (int v = 0; v < d->variables; ++v)
    for (int k = 0; k < layers(d, neighbour, 1); ++k)
      for (int j = 0; j < layers(d, neighbour, 0); ++j, message += d->n) {
        double* const line = d->now + line_at(d, v, y + j, z + k) + 1;
        memcpy(own ? message : line, own ? line : message, bytes);
      }
}

void begin_exchange(Exchange* e, const Domain* d) {
  for (int k = 0; k < e->count; ++k)
    MPI_Irecv(e->in[k], e->bytes[k], MPI_BYTE, e->peers[k], k, e->comm, &e->requests[k]);
  for (int k = 0; k < e->count; ++k) {
    if (e->peers[k] != MPI_PROC_NULL) copy_lines(d, k, 1, e->out[k]);
    /* What leaves to one of them comes in from the opposite one. */
    MPI_Isend(e->out[k], e->bytes[k], MPI_BYTE, e->peers[k], k ^ 1, e->comm, &e->requests[e->count + k]);
  }
}

void end_exchange(Exchange* e, Domain* d) {
  MPI_Waitall(2 * e->count, e->requests, MPI_STATUSES_IGNORE);
  for (int k = 0; k < e->count; ++k)
    if (e->peers[k] != MPI_PROC_NULL) copy_lines(d, k, 0, e->in[k]);
}
