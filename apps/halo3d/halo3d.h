/* SPDX-License-Identifier: BSD-3-Clause
 * halo3d: Jacobi's method for Laplace's equation on a cube with zero boundaries, 7-point stencil, several variables at a
 * time, in plain MPI. The cube is cut in two dimensions (y and z); x stays whole.
 *
 * Known solution: variable v starts as the product of three sines, which a sweep multiplies by one known factor. */
#ifndef HALO3D_H
#define HALO3D_H

#include <mpi.h>

enum { SIDES = 4, LOW_Y = 0, HIGH_Y = 1, LOW_Z = 2, HIGH_Z = 3 };

typedef struct {
  int n; /* points of the cube in each direction, boundaries aside */
  int variables;
  int first[2], points[2]; /* of this rank, in y and z */
  double *now, *after;     /* variables x (points[1] + 2) x (points[0] + 2) x (n + 2) */
} Domain;

/* 0, or -1: no memory. */
int make_domain(Domain* d, int n, int variables, const int cut[2], const int place[2]);
void free_domain(Domain* d);
void start_values(Domain* d);
/* One sweep over the points that need no neighbour's values, or over the rest. */
void sweep_inner(const Domain* d);
void sweep_outer(const Domain* d);
/* What is computed becomes what is. */
void swap_values(Domain* d);
/* The largest distance from the known solution after so many sweeps, relative to what is left of the start. */
double distance_from_solution(const Domain* d, int sweeps);
/* As doubles, one after the other. 0, or -1: not all were written. */
int write_values(const Domain* d, const char* file);

typedef struct {
  MPI_Comm comm;
  int peers[SIDES]; /* MPI_PROC_NULL at the cube's boundary */
  int bytes[SIDES];
  double *out[SIDES], *in[SIDES];
  MPI_Request requests[2 * SIDES];
} Exchange;

int make_exchange(Exchange* e, const Domain* d, MPI_Comm comm);
void free_exchange(Exchange* e);
/* Posts all receives and sends of the current values' sides. */
void begin_exchange(Exchange* e, const Domain* d);
/* Waits, and fills what surrounds the rank's points. */
void end_exchange(Exchange* e, Domain* d);

#endif
