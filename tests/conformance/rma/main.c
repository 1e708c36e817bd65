/* SPDX-License-Identifier: BSD-3-Clause
 * Options, the lines, and the end: exit status 0 when everything was right on every rank. */
#include "rma.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kNameBytes = 160, kTag = 4711 };

static const char kUsage[] =
    "usage: rma [--seed N] [--episodes N] [--epochs LIST] [--windows LIST] [--plain] [--copies]\n"
    "  --seed      of the random program (default 1)\n"
    "  --episodes  how long it is (default 100)\n"
    "  --epochs    of which kinds: fence,pscw,lock_all,lock (all)\n"
    "  --windows   on which: create,allocate,part,dynamic (all)\n"
    "  --plain     contiguous types only, no forms with requests\n"
    "  --copies    puts and gets only, nothing atomic\n"
    "  2 to 8 ranks.\n";

/* Those named in "a,b", as bits; false: one is not a name. */
static bool parse_names(const char* list, const char* const* names, int count, unsigned* bits) {
  *bits = 0;
  while (*list != 0) {
    const size_t length = strcspn(list, ",");
    int found = 0;
    while (found < count && (strlen(names[found]) != length || strncmp(list, names[found], length) != 0)) ++found;
    if (found == count) return false;
    *bits |= 1u << found;
    list += length + (list[length] == ',');
  }
  return *bits != 0;
}

static bool parse(int argc, char** argv, uint64_t* seed, int* episodes) {
  for (int i = 1; i < argc; ++i) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--plain") == 0) {
      scope.derived = scope.requests = false;
    } else if (strcmp(argv[i], "--copies") == 0) {
      scope.atomics = false;
    } else if (strcmp(argv[i], "--seed") == 0 && *value != 0) {
      *seed = strtoull(argv[++i], NULL, 10);
    } else if (strcmp(argv[i], "--episodes") == 0 && atoi(value) > 0) {
      *episodes = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--epochs") == 0 && parse_names(value, epoch_names, kEpochs, &scope.epochs)) {
      ++i;
    } else if (strcmp(argv[i], "--windows") == 0 && parse_names(value, window_names, kWindows, &scope.windows)) {
      ++i;
    } else {
      return false;
    }
  }
  return true;
}

/* From all ranks, point to point: what is tested does not carry its own results. Returns whether all were right. */
static bool print_line(const char* name, uint64_t hash, bool good) {
  uint64_t mine[2] = {hash, good};
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank != 0) {
    MPI_Send(mine, 2, MPI_UINT64_T, 0, kTag, MPI_COMM_WORLD);
    return good;
  }
  for (int from = 1; from < size; ++from) {
    uint64_t other[2];
    MPI_Recv(other, 2, MPI_UINT64_T, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    mine[0] = mix(mine[0]) ^ other[0];
    mine[1] &= other[1];
  }
  printf("%s %016" PRIx64 "%s\n", name, mine[0], mine[1] ? "" : " WRONG");
  fflush(stdout);
  return mine[1] != 0;
}

static bool run(uint64_t seed, int episodes) {
  static const struct {
    const char* name;
    Contention* run;
  } kContentions[] = {{"contention: fetch_and_op", contend_fetch_and_op},
                      {"contention: get_accumulate", contend_get_accumulate},
                      {"contention: compare_and_swap", contend_compare_and_swap},
                      {"contention: lock", contend_lock}};
  bool good = true;
  for (size_t i = 0; scope.atomics && i < sizeof(kContentions) / sizeof(kContentions[0]); ++i) {
    uint64_t hash = 0;
    const bool right = kContentions[i].run(&hash);
    good = print_line(kContentions[i].name, hash, right) && good;
  }
  Random random = {mix(seed)};
  windows_create(seed);
  for (int i = 0; i < episodes; ++i) {
    char name[kNameBytes];
    uint64_t hash = 0;
    const bool right = episode_run(i, &random, name, sizeof(name), &hash);
    good = print_line(name, hash, right) && good;
  }
  windows_free();
  return good;
}

int main(int argc, char** argv) {
  uint64_t seed = 1;
  int episodes = 100, rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!parse(argc, argv, &seed, &episodes) || size < 2 || size > kMaxRanks) {
    if (rank == 0) fputs(kUsage, stderr);
    MPI_Finalize();
    return 2;
  }
  const bool good = run(seed, episodes);
  if (!good && rank == 0)
    fprintf(stderr,
            "wrong. To repeat, with %d ranks and the same --epochs, --windows, --plain, --copies: --seed %" PRIu64
            " --episodes %d\n",
            size, seed, episodes);
  MPI_Finalize();
  return good ? 0 : 1;
}
