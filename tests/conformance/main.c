/* SPDX-License-Identifier: BSD-3-Clause
 * Options and the end: exit status 0 when every case was right on every rank. */
#include "conformance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Options {
  enum { kMatrix, kRandom, kThreads, kHuge } mode;
  enum Form form;
  int every, steps, threads;
  uint64_t seed;
  const char* match;
} Options;

static const char kUsage[] =
    "usage: conformance [--form nonblocking|persistent|blocking] [--seed N] [--match TEXT]\n"
    "                   [--every N | --random --steps N | --threads N | --huge]\n"
    "  --match     of these only the cases whose line contains TEXT\n"
    "  --every N   the matrix of all cases, every Nth of them (default 1: all); N prime and over 23\n"
    "  --random    a random program of --steps operations; --seed repeats it\n"
    "  --threads N that many threads at once\n"
    "  --huge      calls of over 2 GiB\n";

static bool parse_form(const char* text, enum Form* form) {
  static const char* const kForms[] = {"nonblocking", "persistent", "blocking"};
  for (int i = 0; i < 3; ++i)
    if (strcmp(text, kForms[i]) == 0) return *form = (enum Form)i, true;
  return false;
}

static bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--random") == 0) {
      options->mode = kRandom;
    } else if (strcmp(argv[i], "--huge") == 0) {
      options->mode = kHuge;
    } else if (strcmp(argv[i], "--form") == 0 && parse_form(value, &options->form)) {
      ++i;
    } else if (strcmp(argv[i], "--seed") == 0 && *value != 0) {
      options->seed = strtoull(argv[++i], NULL, 10);
    } else if (strcmp(argv[i], "--match") == 0 && *value != 0) {
      options->match = argv[++i];
    } else if (strcmp(argv[i], "--every") == 0 && atoi(value) > 0) {
      options->every = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--steps") == 0 && atoi(value) > 0) {
      options->steps = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--threads") == 0 && atoi(value) > 0) {
      options->mode = kThreads;
      options->threads = atoi(argv[++i]);
    } else {
      return false;
    }
  }
  return true;
}

static int run(const Options* options) {
  switch (options->mode) {
    case kRandom:
      return random_run(options->form, options->seed, options->steps, options->match);
    case kThreads:
      return threads_run(options->threads, options->seed);
    case kHuge:
      return huge_run();
    default:
      return matrix_run(options->form, options->every, options->seed, options->match);
  }
}

int main(int argc, char** argv) {
  Options options = {.every = 1, .steps = 500, .seed = 1};
  int provided, rank, size;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  /* Complex products stay exact and off the axes for as many ranks; every rank has four neighbours. */
  const bool usable = parse(argc, argv, &options) && size <= 6 && provided == MPI_THREAD_MULTIPLE;
  if (!usable) {
    if (rank == 0) fprintf(stderr, "%s  At most 6 ranks, and an MPI with MPI_THREAD_MULTIPLE.\n", kUsage);
    MPI_Finalize();
    return 2;
  }
  types_create();
  reductions_create();
  communicators_create();
  const int wrong = run(&options);
  if (rank == 0 && wrong > 0) {
    fprintf(stderr, "%d cases failed or are wrong. To repeat, with %d ranks:", wrong, size);
    for (int i = 0; i < argc; ++i) fprintf(stderr, " %s", argv[i]);
    fprintf(stderr, options.mode == kRandom ? " (seed %" PRIu64 ")\n" : "\n", options.seed);
  }
  communicators_free();
  reductions_free();
  types_free();
  MPI_Finalize();
  return wrong > 0 ? 1 : 0;
}
