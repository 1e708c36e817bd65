/* SPDX-License-Identifier: BSD-3-Clause
 * OpenMP's threads allocate, resize and free memory, and write beside buffers that are moved, while operations run on those. */
#define _GNU_SOURCE
#include "world.h"

#include <malloc.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { COUNT = 32 * 1024, STEPS = 60, THREADS = 3 };

/* One that is full of its number, now and then another. */
static int churn(unsigned seed, atomic_int* over) {
  enum { BLOCKS = 24 };
  unsigned char* blocks[BLOCKS] = {NULL};
  size_t lengths[BLOCKS] = {0};
  int ok = 1;
  while (!atomic_load(over)) {
    const int i = rand_r(&seed) % BLOCKS;
    const size_t length = 1 + (size_t)rand_r(&seed) % (rand_r(&seed) % 4 == 0 ? 400000 : 3000);
    for (size_t at = 0; at < lengths[i]; at += 97) ok &= blocks[i][at] == (unsigned char)i;
    if (rand_r(&seed) % 2) free(blocks[i]), blocks[i] = NULL;
    blocks[i] = realloc(blocks[i], length);
    memset(blocks[i], i, length);
    lengths[i] = length;
    if (rand_r(&seed) % 64 == 0) malloc_trim(0);
    if (rand_r(&seed) % 8 == 0) {
      char* pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ok &= pages != MAP_FAILED && pages[0] == 0 && pages[length - 1] == 0;
      munmap(pages, length);
    }
  }
  for (int i = 0; i < BLOCKS; ++i) free(blocks[i]);
  return ok;
}

static int exchange(int* send, int* recv, int round) { return all_to_all(send, recv, COUNT, round); }

int main(int argc, char** argv) {
  int ok = 1;
  atomic_int over = 0;
  enter_with(&argc, &argv, MPI_THREAD_FUNNELED);
#pragma omp parallel num_threads(THREADS) reduction(& : ok)
  {
    int mine = 1, number = 0;
#pragma omp critical
    {
      static int next = 1;
      number = next++;
    }
#pragma omp barrier
#pragma omp master
    {
      const size_t bytes = sizeof(int) * (size_t)size * COUNT;
      int *kept = malloc(bytes), *recv = malloc(bytes);
      for (int step = 0; step < STEPS; ++step) {
        int* fresh = malloc(bytes + (size_t)step);
        mine &= exchange(kept, recv, step) && exchange(recv, fresh, step + 100) && exchange(fresh, kept, step + 200);
        free(fresh);
      }
      free(kept);
      free(recv);
      atomic_store(&over, 1);
    }
    mine &= churn((unsigned)(rank * THREADS + number), &over);
    ok &= mine;
  }
  report("threads that allocate", ok);
  return finish();
}
