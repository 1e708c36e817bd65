/* SPDX-License-Identifier: BSD-3-Clause */
#include "halo3d.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t row(const Domain* d) { return (size_t)d->n + 2; }
static size_t plane(const Domain* d) { return row(d) * (size_t)(d->points[0] + 2 * d->depth); }
static size_t volume(const Domain* d) { return plane(d) * (size_t)(d->points[1] + 2 * d->depth); }

size_t line_at(const Domain* d, int v, int y, int z) {
  return volume(d) * (size_t)v + plane(d) * (size_t)(z - 1 + d->depth) + row(d) * (size_t)(y - 1 + d->depth);
}

int make_domain(Domain* d, int n, int variables, int depth, const int cut[2], const int place[2]) {
  d->n = n;
  d->variables = variables;
  d->depth = depth;
  for (int i = 0; i < 2; ++i) {
    d->low[i] = place[i] > 0;
    d->high[i] = place[i] < cut[i] - 1;
    d->first[i] = (int)((long)n * place[i] / cut[i]);
    d->points[i] = (int)((long)n * (place[i] + 1) / cut[i]) - d->first[i];
  }
  d->now = calloc(volume(d) * (size_t)variables, sizeof(double));
  d->after = calloc(volume(d) * (size_t)variables, sizeof(double));
  return d->now != NULL && d->after != NULL ? 0 : -1;
}

void free_domain(Domain* d) {
  free(d->now);
  free(d->after);
}

/* Half waves of variable v in direction i. */
static int waves(int v, int i) { return 1 + (v + i) % 3; }

static double sine(const Domain* d, int v, int i, int point) { /* counted from 1 */
  return sin(M_PI * waves(v, i) * point / (d->n + 1));
}

void start_values(Domain* d) {
  for (int v = 0; v < d->variables; ++v)
    for (int z = 1; z <= d->points[1]; ++z)
      for (int y = 1; y <= d->points[0]; ++y) {
        double* const line = d->now + line_at(d, v, y, z);
        const double yz = sine(d, v, 1, d->first[0] + y) * sine(d, v, 2, d->first[1] + z);
        for (int x = 1; x <= d->n; ++x) line[x] = sine(d, v, 0, x) * yz;
      }
}

static void sweep_line(const Domain* d, const double* from, double* to, int v, int y, int z) {
  const size_t at = line_at(d, v, y, z);
  const double* const u = from + at;
  const double *low_y = u - row(d), *high_y = u + row(d), *low_z = u - plane(d), *high_z = u + plane(d);
  to += at;
  for (int x = 1; x <= d->n; ++x)
    to[x] = (u[x - 1] + u[x + 1] + low_y[x] + high_y[x] + low_z[x] + high_z[x]) * (1.0 / 6);
}

/* Layers `more` behind this rank's points, or as many before them if it is negative; none beyond the boundary. */
typedef struct {
  int from[2], to[2];
} Part;
static Part part_of(const Domain* d, int more) {
  Part part;
  for (int i = 0; i < 2; ++i) {
    part.from[i] = 1 - (d->low[i] ? more : 0);
    part.to[i] = d->points[i] + (d->high[i] ? more : 0);
  }
  return part;
}

static int has(const Part* part, int y, int z) {
  return y >= part->from[0] && y <= part->to[0] && z >= part->from[1] && z <= part->to[1];
}

/* Sweep number `sweep` of a tile reads what the one before has written, and writes over what that has read. */
static void sweep_part(const Domain* d, int sweep, Part whole, const Part* without) {
  const double* const from = sweep % 2 ? d->now : d->after;
  double* const to = sweep % 2 ? d->after : d->now;
  for (int v = 0; v < d->variables; ++v)
    for (int z = whole.from[1]; z <= whole.to[1]; ++z)
      for (int y = whole.from[0]; y <= whole.to[0]; ++y)
        if (without == NULL || !has(without, y, z)) sweep_line(d, from, to, v, y, z);
}

void sweep_inner(const Domain* d, int sweeps) {
  for (int sweep = 1; sweep <= sweeps; ++sweep) sweep_part(d, sweep, part_of(d, -sweep), NULL);
}

void sweep_outer(Domain* d, int sweeps) {
  for (int sweep = 1; sweep <= sweeps; ++sweep) {
    const Part inner = part_of(d, -sweep);
    sweep_part(d, sweep, part_of(d, sweeps - sweep), &inner);
  }
  if (sweeps % 2 == 0) return;
  double* const old = d->now;
  d->now = d->after;
  d->after = old;
}

double distance_from_solution(const Domain* d, int sweeps) {
  double largest = 0;
  for (int v = 0; v < d->variables; ++v) {
    double factor = 0;
    for (int i = 0; i < 3; ++i) factor += cos(M_PI * waves(v, i) / (d->n + 1)) / 3;
    const double left = pow(factor, sweeps);
    for (int z = 1; z <= d->points[1]; ++z)
      for (int y = 1; y <= d->points[0]; ++y) {
        const double* const line = d->now + line_at(d, v, y, z);
        const double yz = sine(d, v, 1, d->first[0] + y) * sine(d, v, 2, d->first[1] + z);
        for (int x = 1; x <= d->n; ++x) largest = fmax(largest, fabs(line[x] / left - sine(d, v, 0, x) * yz));
      }
  }
  return largest;
}

uint64_t bits_of(const Domain* d) {
  uint64_t sum = 0;
  for (int v = 0; v < d->variables; ++v)
    for (int z = 1; z <= d->points[1]; ++z)
      for (int y = 1; y <= d->points[0]; ++y) {
        const double* const line = d->now + line_at(d, v, y, z);
        const uint64_t place =
            ((uint64_t)v * (uint64_t)d->n + (uint64_t)(d->first[1] + z)) * (uint64_t)d->n + (uint64_t)(d->first[0] + y);
        for (int x = 1; x <= d->n; ++x) {
          uint64_t bits;
          memcpy(&bits, &line[x], sizeof(bits));
          bits = (bits ^ (place * (uint64_t)d->n + (uint64_t)x) * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
          sum += bits ^ bits >> 31;
        }
      }
  return sum;
}

int write_values(const Domain* d, const char* file) {
  const size_t count = volume(d) * (size_t)d->variables;
  FILE* const out = fopen(file, "wb");
  if (out == NULL) return -1;
  const int written = fwrite(d->now, sizeof(double), count, out) == count;
  return fclose(out) == 0 && written ? 0 : -1;
}
