// SPDX-License-Identifier: BSD-3-Clause
// An OpenSHMEM program: each element puts its number into the next one's memory.
#include <shmem.h>

int main(void) {
  static long found = -1;
  shmem_init();
  const int me = shmem_my_pe(), count = shmem_n_pes();
  shmem_long_p(&found, me, (me + 1) % count);
  shmem_barrier_all();
  const int wrong = found != (me + count - 1) % count;
  shmem_finalize();
  return wrong;
}
