/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Halo exchange: a rod of cells in 1-D blocks of rows, a five-point stencil in two dimensions. The outer rows of each
 * rank, which need the neighbours', are computed with their communication in a target region on the DPU, while the host
 * computes the inner rows. See options() for the arguments.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rows = 512;      /* of a rank */
static int columns = 1024;
static int steps = 20;
static int thickness = 64;  /* outer rows at each end */
static int repeats = 4;     /* stencil sweeps' weight: arithmetic per cell */
static int on_host = 0;

#pragma omp declare target
static double cell(const double* at, int width, int work) {
  double value = at[0];
  for (int i = 0; i < work; ++i) value = 0.25 * (at[-width] + at[width] + at[-1] + at[1]) * 0.5 + 0.5 * value;
  return value;
}

/* Rows [first, last) of `next`; every row has a column of zeros at each end. */
static void sweep(const double* now, double* next, int width, int first, int last, int work) {
  for (int row = first; row < last; ++row) {
    for (int column = 1; column < width - 1; ++column) {
      const long at = (long)row * width + column;
      next[at] = cell(now + at, width, work);
    }
  }
}

/* Ranks above and below exchange their edge rows; what lies beyond the rod stays zero. */
static void exchange(double* top_halo, const double* top, const double* bottom, double* bottom_halo, int width,
                     int above, int below) {
  MPI_Request requests[4];
  MPI_Irecv(top_halo, width, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(bottom_halo, width, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(top, width, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(bottom, width, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}
#pragma omp end declare target

/* One step: all of `next` from `now`. Both have a halo row at each end. Seconds of the parts are added up. */
static void step(double* now, double* next, int above, int below, double* inner_s, double* outer_s) {
  const int width = columns + 2;
  const int work = repeats;
  const int edge = thickness;
  const long cells = (long)(edge + 2) * width;          /* what the outer rows of one end read */
  const long written = (long)edge * width;
  double* const top = now;                              /* halo, outer rows, one inner row */
  double* const bottom = now + (long)(rows - edge) * width; /* one inner row, outer rows, halo */
  double* const next_top = next + width;
  double* const next_bottom = next + (long)(rows - edge + 1) * width;
  double outer = 0;
  if (on_host) {
    const double begin = MPI_Wtime();
    exchange(top, top + width, bottom + (long)edge * width, bottom + (long)(edge + 1) * width, width, above, below);
    sweep(now, next, width, 1, edge + 1, work);
    sweep(now, next, width, rows - edge + 1, rows + 1, work);
    outer = MPI_Wtime() - begin;
  } else {
#pragma omp target nowait map(to: top[0:cells], bottom[0:cells]) map(from: next_top[0:written], next_bottom[0:written]) \
    map(from: outer)
    {
      const double begin = MPI_Wtime();
      exchange(top, top + width, bottom + (long)edge * width, bottom + (long)(edge + 1) * width, width, above, below);
      sweep(top, next_top - width, width, 1, edge + 1, work);
      sweep(bottom, next_bottom - width, width, 1, edge + 1, work);
      outer = MPI_Wtime() - begin;
    }
  }
  const double begin = MPI_Wtime();
  sweep(now, next, width, edge + 1, rows - edge + 1, work);
  *inner_s += MPI_Wtime() - begin;
#pragma omp taskwait
  *outer_s += outer;
}

static double start_value(long row, int column) { return (double)((row * 131 + column * 71) % 1009) / 1009.0; }

static void fill(double* field, long first_row, int count) {
  const int width = columns + 2;
  for (int row = 0; row < count; ++row) {
    for (int column = 0; column < columns; ++column) {
      field[(long)(row + 1) * width + column + 1] = start_value(first_row + row, column);
    }
  }
}

/* The whole rod on one process, compared cell by cell. */
static int verify(const double* own, int rank, int size) {
  const int width = columns + 2;
  const int all_rows = rows * size;
  const size_t cells = (size_t)(all_rows + 2) * width;
  double* now = calloc(cells, sizeof(double));
  double* next = calloc(cells, sizeof(double));
  if (now == NULL || next == NULL) return 0;
  fill(now, 0, all_rows);
  for (int i = 0; i < steps; ++i) {
    sweep(now, next, width, 1, all_rows + 1, repeats);
    double* const swap = now;
    now = next;
    next = swap;
  }
  int same = 1;
  for (int row = 1; row <= rows && same; ++row) {
    for (int column = 1; column <= columns && same; ++column) {
      const double difference =
          own[(long)row * width + column] - now[(long)(rank * rows + row) * width + column];
      same = difference < 1e-9 && difference > -1e-9;
    }
  }
  free(now);
  free(next);
  return same;
}

static int options(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const struct {
      const char* name;
      int* value;
    } known[] = {{"--rows", &rows}, {"--columns", &columns}, {"--steps", &steps}, {"--outer", &thickness},
                 {"--work", &repeats}};
    if (strcmp(argv[i], "--host") == 0) {
      on_host = 1;
      continue;
    }
    int found = 0;
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); ++k) {
      if (strcmp(argv[i], known[k].name) != 0) continue;
      found = i + 1 < argc && (*known[k].value = atoi(argv[i + 1])) > 0;
    }
    if (!found) {
      fprintf(stderr, "halo: %s is not an option with a positive number (nothing was run). Usage: halo [--host] [--rows N] "
              "[--columns N] [--steps N] [--outer ROWS] [--work N]\n", argv[i]);
      return 0;
    }
    ++i;
  }
  if (2 * thickness >= rows) {
    fprintf(stderr, "halo: --outer %d leaves no inner rows of --rows %d. Make it less than half\n", thickness, rows);
    return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  if (!options(argc, argv)) return 2;
  int rank = 0, size = 0, provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t cells = (size_t)(rows + 2) * (columns + 2);
  double* now = calloc(cells, sizeof(double));
  double* next = calloc(cells, sizeof(double));
  if (now == NULL || next == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int below = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  double times[3] = {0, 0, 0}; /* step, inner, outer */
  double unused = 0;
  step(now, next, above, below, &unused, &unused); /* the device and its memory are there from now on */
  fill(now, (long)rank * rows, rows);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < steps; ++i) {
    step(now, next, above, below, &times[1], &times[2]);
    double* const swap = now;
    now = next;
    next = swap;
  }
  times[0] = MPI_Wtime() - begin;
  double longest[3];
  MPI_Reduce(times, longest, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const int mine = verify(now, rank, size);
  int right = 0;
  MPI_Reduce(&mine, &right, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("halo: %d ranks, %d x %d cells each, %d outer rows at each end, outer part on the %s\n", size, rows, columns,
           thickness, on_host ? "host" : "DPU");
    printf("step_ms %.3f\ninner_ms %.3f\nouter_ms %.3f\n", 1e3 * longest[0] / steps, 1e3 * longest[1] / steps,
           1e3 * longest[2] / steps);
    printf("verified: %s\n", right ? "yes" : "no");
  }
  free(now);
  free(next);
  MPI_Finalize();
  return rank == 0 && !right ? 1 : 0;
}
