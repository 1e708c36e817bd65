/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "idle/idle_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static offpath_rest_t* volatile rest_of_front_end;
static int (*volatile next_yield)(void); /* another library's, found before it is needed: a lock may be held then */

void offpath_rest_in_idle_calls(offpath_rest_t* rest) {
  if (next_yield == NULL) *(void* volatile*)&next_yield = dlsym(RTLD_NEXT, "sched_yield");
  rest_of_front_end = rest;
}

/* By its file: if the call is the last thing that a function of the library does, it seems to come from wherever that
 * function was called. */
static int is_of_mpi(const void* caller) {
  static const char* const files[] = {"libmpi", "libopen-", "libopal", "liboshmem", "mca_"};
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) return 0;
  const char* slash = strrchr(info.dli_fname, '/');
  const char* name = slash == NULL ? info.dli_fname : slash + 1;
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
    if (strncmp(name, files[i], strlen(files[i])) == 0) return 1;
  }
  return 0;
}

/* A library has few such places, and no round should take the loader's lock: what was found stays, a word for each. */
static int is_idle_call(const void* caller) {
  enum { PLACES = 64 };
  static uint64_t known[PLACES]; /* address << 1 | answer */
  const uint64_t address = (uint64_t)(uintptr_t)caller;
  uint64_t* place = &known[(address ^ address >> 6) % PLACES];
  const uint64_t found = __atomic_load_n(place, __ATOMIC_RELAXED);
  if (found >> 1 == address) return (int)(found & 1);
  const int answer = is_of_mpi(caller);
  __atomic_store_n(place, address << 1 | (uint64_t)answer, __ATOMIC_RELAXED);
  return answer;
}

static int rests(const void* caller) {
  offpath_rest_t* rest = rest_of_front_end;
  if (rest == NULL) return 0;
  const int saved_errno = errno;
  const int rested = is_idle_call(caller) && rest();
  errno = saved_errno;
  return rested;
}

EXPORTED int sched_yield(void) {
  if (rests(__builtin_return_address(0))) return 0;
  int (*next)(void) = next_yield;
  return next == NULL ? (int)syscall(SYS_sched_yield) : next();
}

/* UCX may have been opened with RTLD_LOCAL: then it is not behind us in the search order. */
static void* find_progress(void) {
  void* next = dlsym(RTLD_NEXT, "ucp_worker_progress");
  if (next != NULL) return next;
  void* ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
  return ucp == NULL ? NULL : dlsym(ucp, "ucp_worker_progress");
}

EXPORTED unsigned ucp_worker_progress(void* worker) {
  static unsigned (*volatile next)(void*);
  if (next == NULL) *(void* volatile*)&next = find_progress();
  if (next == NULL) return 0; /* nobody can have made a worker */
  const unsigned events = next(worker);
  if (events == 0) (void)rests(__builtin_return_address(0));
  return events;
}
