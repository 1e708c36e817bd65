/* SPDX-License-Identifier: BSD-3-Clause
 * halo3d: Jacobi's method for Laplace's equation on a cube with zero boundaries, 7-point stencil, several variables at a
 * time, in plain MPI. The cube is cut in two dimensions (y and z); x stays whole.
 *
 * Time tiles: a message has so many layers of the neighbour's points that several sweeps need no other one. Points near the edges are
 * then computed by both ranks.
 *
 * Known solution: variable v starts as the product of three sines, which a sweep multiplies by one known factor. */
#ifndef HALO3D_H
#define HALO3D_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* Where neighbours are, in y and z. Opposite ones differ in the last bit. */
enum { SIDES = 4, NEIGHBOURS = 8 }; /* the sides come first, then the edges, which sweeps of one layer do not need */
extern const int kAway[NEIGHBOURS][2];

typedef struct {
  int n; /* points of the cube in each direction, boundaries aside */
  int variables;
  int depth;               /* layers of neighbours' points: sweeps of a tile */
  int first[2], points[2]; /* of this rank, in y and z */
  int low[2], high[2];     /* is there a neighbour? */
  double *now, *after;     /* variables x (points[1] + 2 depth) x (points[0] + 2 depth) x (n + 2) */
} Domain;

/* 0, or -1: no memory. */
int make_domain(Domain* d, int n, int variables, int depth, const int cut[2], const int place[2]);
void free_domain(Domain* d);
/* Of variable v, y and z counted from 1 on: the points along x, the first one of which is a boundary. */
size_t line_at(const Domain* d, int v, int y, int z);
void start_values(Domain* d);
/* So many sweeps, at most depth: of all that needs no neighbour's values, which is less with each, and then of the rest. Their result is
 * what is, after both. */
void sweep_inner(const Domain* d, int sweeps);
void sweep_outer(Domain* d, int sweeps);
/* The largest distance from the known solution after so many sweeps, relative to what is left of the start. */
double distance_from_solution(const Domain* d, int sweeps);
/* A number made of all bits of this rank's values and of where they are. Its sum over the ranks does not depend on how many they are. */
uint64_t bits_of(const Domain* d);
/* As doubles, one after the other. 0, or -1: not all were written. */
int write_values(const Domain* d, const char* file);

typedef struct {
  MPI_Comm comm;
  int count;             /* of neighbours that are asked */
  int peers[NEIGHBOURS]; /* MPI_PROC_NULL beyond the cube's boundary */
  int bytes[NEIGHBOURS];
  double *out[NEIGHBOURS], *in[NEIGHBOURS];
  MPI_Request requests[2 * NEIGHBOURS];
} Exchange;

int make_exchange(Exchange* e, const Domain* d, MPI_Comm comm);
void free_exchange(Exchange* e);
/* Posts all receives and sends of the current values' outer layers. */
void begin_exchange(Exchange* e, const Domain* d);
/* Waits, and fills what surrounds the rank's points. */
void end_exchange(Exchange* e, Domain* d);

#endif
