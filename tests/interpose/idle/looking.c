/* SPDX-License-Identifier: BSD-3-Clause
 * A library that looks and finds nothing, as an MPI library does; built under two names. */
#include <sched.h>

/* The last call of a function, which compilers make a jump: it seems to come from where that function was called. */
__attribute__((noinline)) static int look_last(void) { return sched_yield(); }

int look(int* rounds) {
  const int code = sched_yield() + look_last();
  ++*rounds;
  return code;
}

unsigned ucp_worker_progress(void* worker);
unsigned look_by_ucx(void* worker) { return ucp_worker_progress(worker) + 1; }
