/* SPDX-License-Identifier: BSD-3-Clause */
#include "halo3d.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static size_t row(const Domain* d) { return (size_t)d->n + 2; }
static size_t plane(const Domain* d) { return row(d) * ((size_t)d->points[0] + 2); }
static size_t volume(const Domain* d) { return plane(d) * ((size_t)d->points[1] + 2); }

int make_domain(Domain* d, int n, int variables, const int cut[2], const int place[2]) {
  d->n = n;
  d->variables = variables;
  for (int i = 0; i < 2; ++i) {
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
        double* const line = d->now + volume(d) * (size_t)v + plane(d) * (size_t)z + row(d) * (size_t)y;
        const double yz = sine(d, v, 1, d->first[0] + y) * sine(d, v, 2, d->first[1] + z);
        for (int x = 1; x <= d->n; ++x) line[x] = sine(d, v, 0, x) * yz;
      }
}

static void sweep_line(const Domain* d, int v, int y, int z) {
  const size_t at = volume(d) * (size_t)v + plane(d) * (size_t)z + row(d) * (size_t)y;
  const double* const u = d->now + at;
  const double *low_y = u - row(d), *high_y = u + row(d), *low_z = u - plane(d), *high_z = u + plane(d);
  double* const to = d->after + at;
  for (int x = 1; x <= d->n; ++x)
    to[x] = (u[x - 1] + u[x + 1] + low_y[x] + high_y[x] + low_z[x] + high_z[x]) * (1.0 / 6);
}

static int is_outer(const Domain* d, int y, int z) {
  return y == 1 || y == d->points[0] || z == 1 || z == d->points[1];
}

void sweep_inner(const Domain* d) {
  for (int v = 0; v < d->variables; ++v)
    for (int z = 2; z < d->points[1]; ++z)
      for (int y = 2; y < d->points[0]; ++y) sweep_line(d, v, y, z);
}

void sweep_outer(const Domain* d) {
  for (int v = 0; v < d->variables; ++v)
    for (int z = 1; z <= d->points[1]; ++z)
      for (int y = 1; y <= d->points[0]; ++y)
        if (is_outer(d, y, z)) sweep_line(d, v, y, z);
}

void swap_values(Domain* d) {
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
        const double* const line = d->now + volume(d) * (size_t)v + plane(d) * (size_t)z + row(d) * (size_t)y;
        const double yz = sine(d, v, 1, d->first[0] + y) * sine(d, v, 2, d->first[1] + z);
        for (int x = 1; x <= d->n; ++x) largest = fmax(largest, fabs(line[x] / left - sine(d, v, 0, x) * yz));
      }
  }
  return largest;
}

int write_values(const Domain* d, const char* file) {
  const size_t count = volume(d) * (size_t)d->variables;
  FILE* const out = fopen(file, "wb");
  if (out == NULL) return -1;
  const int written = fwrite(d->now, sizeof(double), count, out) == count;
  return fclose(out) == 0 && written ? 0 : -1;
}
