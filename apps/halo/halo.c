/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Halo exchange: a plate of cells in blocks of rows, one a rank; each step is a five-point stencil. The outer rows of a
 * rank, which need the neighbours', live on the DPU: a target region communicates and computes them while the host
 * computes the inner rows. With --host both parts are tasks of two threads of the host. See options() for the
 * arguments. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rows = 512; /* of a rank */
static int columns = 1024;
static int steps = 20;
static int thickness = 64; /* outer rows at each end */
static int repeats = 4;    /* arithmetic per cell */
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

/* Ranks above and below exchange their edge rows; what lies beyond the plate stays zero. */
static void exchange(double* top, double* bottom, int width, int edge, int above, int below) {
  MPI_Request requests[4];
  MPI_Irecv(top, width, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(bottom + (long)(edge + 1) * width, width, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(top + width, width, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(bottom + (long)edge * width, width, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

/* The outer rows of both ends. A block is a row of the neighbour, `edge` rows, another row of the neighbour; the inner
 * part's come in `from_inner`, what it needs goes to `to_inner`, a row for each end. Returns the seconds it took. */
static double outer_step(double* top, double* bottom, double* next_top, double* next_bottom, const double* from_inner,
                         double* to_inner, int width, int edge, int work, int above, int below) {
  const double begin = MPI_Wtime();
  const size_t row = sizeof(double) * (size_t)width;
  exchange(top, bottom, width, edge, above, below);
  memcpy(top + (long)(edge + 1) * width, from_inner, row);
  memcpy(bottom, from_inner + width, row);
  sweep(top, next_top, width, 1, edge + 1, work);
  sweep(bottom, next_bottom, width, 1, edge + 1, work);
  memcpy(to_inner, next_top + (long)edge * width, row);
  memcpy(to_inner + width, next_bottom + width, row);
  return MPI_Wtime() - begin;
}
#pragma omp end declare target

/* A field of a rank: its inner rows live on the host, its outer rows on the DPU, blocks with a row more at each end. */
struct field {
  double *inner, *top, *bottom;
};

static long block_cells(int block_rows) { return (long)(block_rows + 2) * (columns + 2); }

static struct field make_field(void) {
  struct field made = {calloc((size_t)block_cells(rows - 2 * thickness), sizeof(double)),
                       calloc((size_t)block_cells(thickness), sizeof(double)),
                       calloc((size_t)block_cells(thickness), sizeof(double))};
  if (made.inner == NULL || made.top == NULL || made.bottom == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return made;
}

/* One step: all of `next` from `now`. Seconds of the parts are added up. */
static void step(struct field* now, struct field* next, double* from_inner, double* to_inner, int above, int below,
                 double* inner_s, double* outer_s) {
  const int width = columns + 2;
  const int work = repeats;
  const int edge = thickness;
  const int inner = rows - 2 * edge;
  const long two_rows = 2L * width;
  double *const top = now->top, *const bottom = now->bottom, *const next_top = next->top,
                *const next_bottom = next->bottom;
  const double* const in = from_inner;
  double* const out = to_inner;
  double outer[1] = {0};
  memcpy(from_inner, now->inner + width, sizeof(double) * (size_t)width);
  memcpy(from_inner + width, now->inner + (long)inner * width, sizeof(double) * (size_t)width);
  double begin = 0, end = 0;
  if (on_host) {
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task shared(outer)
      outer[0] = outer_step(top, bottom, next_top, next_bottom, in, out, width, edge, work, above, below);
      begin = MPI_Wtime();
      sweep(now->inner, next->inner, width, 1, inner + 1, work);
      end = MPI_Wtime();
    }
  } else {
#pragma omp target nowait map(to : in [0:two_rows]) map(from : out [0:two_rows], outer)
    outer[0] = outer_step(top, bottom, next_top, next_bottom, in, out, width, edge, work, above, below);
    begin = MPI_Wtime();
    sweep(now->inner, next->inner, width, 1, inner + 1, work);
    end = MPI_Wtime();
#pragma omp taskwait
  }
  memcpy(next->inner, to_inner, sizeof(double) * (size_t)width);
  memcpy(next->inner + (long)(inner + 1) * width, to_inner + width, sizeof(double) * (size_t)width);
  *inner_s += end - begin;
  *outer_s += outer[0];
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

static int same_rows(const double* block, const double* all, long first_row, int count) {
  const int width = columns + 2;
  for (int row = 1; row <= count; ++row) {
    for (int column = 1; column <= columns; ++column) {
      const double difference = block[(long)row * width + column] - all[(first_row + row) * width + column];
      if (!(difference < 1e-9 && difference > -1e-9)) return 0;
    }
  }
  return 1;
}

/* The whole plate on one process, compared cell by cell. */
static int verify(const struct field* own, int rank, int size) {
  const int width = columns + 2;
  const int all_rows = rows * size;
  const long first = (long)rank * rows;
  double* now = calloc((size_t)block_cells(all_rows), sizeof(double));
  double* next = calloc((size_t)block_cells(all_rows), sizeof(double));
  if (now == NULL || next == NULL) return 0;
  fill(now, 0, all_rows);
  for (int i = 0; i < steps; ++i) {
    sweep(now, next, width, 1, all_rows + 1, repeats);
    double* const swap = now;
    now = next;
    next = swap;
  }
  const int same = same_rows(own->top, now, first, thickness) &&
                   same_rows(own->inner, now, first + thickness, rows - 2 * thickness) &&
                   same_rows(own->bottom, now, first + rows - thickness, thickness);
  free(now);
  free(next);
  return same;
}

static int options(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const struct {
      const char* name;
      int* value;
    } known[] = {
        {"--rows", &rows}, {"--columns", &columns}, {"--steps", &steps}, {"--outer", &thickness}, {"--work", &repeats}};
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
      fprintf(stderr,
              "halo: %s is not an option with a positive number (nothing was run). Usage: halo [--host] [--rows N] "
              "[--columns N] [--steps N] [--outer ROWS] [--work N]\n",
              argv[i]);
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
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  struct field fields[2] = {make_field(), make_field()};
  const long cells = block_cells(thickness);
  double *const top = fields[0].top, *const bottom = fields[0].bottom, *const top2 = fields[1].top,
                *const bottom2 = fields[1].bottom;
  const size_t two_rows = 2 * (size_t)(columns + 2);
  double* from_inner = calloc(two_rows, sizeof(double));
  double* to_inner = calloc(two_rows, sizeof(double));
  if (from_inner == NULL || to_inner == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int below = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  double times[3] = {0, 0, 0}; /* step, inner, outer */
  double unused = 0;
#pragma omp target enter data map(to : top [0:cells], bottom [0:cells], top2 [0:cells], bottom2 [0:cells]) if (!on_host)
  step(&fields[0], &fields[1], from_inner, to_inner, above, below, &unused, &unused); /* all is warm from now on */
  fill(top, (long)rank * rows, thickness);
  fill(fields[0].inner, (long)rank * rows + thickness, rows - 2 * thickness);
  fill(bottom, (long)rank * rows + rows - thickness, thickness);
  /* What the outer and the inner part see of each other. */
  const size_t row = sizeof(double) * (size_t)(columns + 2);
  memcpy(fields[0].inner, top + (long)thickness * (columns + 2), row);
  memcpy(fields[0].inner + (long)(rows - 2 * thickness + 1) * (columns + 2), bottom + columns + 2, row);
#pragma omp target update to(top [0:cells], bottom [0:cells]) if (!on_host)
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < steps; ++i) {
    step(&fields[i % 2], &fields[1 - i % 2], from_inner, to_inner, above, below, &times[1], &times[2]);
  }
  times[0] = MPI_Wtime() - begin;
#pragma omp target exit data map(from \
                                 : top [0:cells], bottom [0:cells], top2 [0:cells], bottom2 [0:cells]) if (!on_host)
  double longest[3];
  MPI_Reduce(times, longest, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const int mine = verify(&fields[steps % 2], rank, size);
  int right = 0;
  MPI_Reduce(&mine, &right, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("halo: %d ranks, %d x %d cells each, %d outer rows at each end, outer part on the %s\n", size, rows, columns,
           thickness, on_host ? "host" : "DPU");
    printf("step_ms %.3f\ninner_ms %.3f\nouter_ms %.3f\n", 1e3 * longest[0] / steps, 1e3 * longest[1] / steps,
           1e3 * longest[2] / steps);
    printf("verified: %s\n", right ? "yes" : "no");
  }
  for (int i = 0; i < 2; ++i) {
    free(fields[i].inner);
    free(fields[i].top);
    free(fields[i].bottom);
  }
  free(from_inner);
  free(to_inner);
  MPI_Finalize();
  return rank == 0 && !right ? 1 : 0;
}
