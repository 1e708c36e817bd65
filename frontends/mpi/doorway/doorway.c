/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "mpi/doorway/doorway.h"

#include "mpi/functions/backend.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* In the order of the slots: two for each of these. */
static const struct {
  const char* p_name;
  int function;
} symbols[] = {
#define OFFPATH_MPI_FUNCTION(name, waits, seen) {"PMPI_" #name, OFFPATH_FUNCTION_##name},
#define OFFPATH_MPI_PERSISTENT(name, waits, seen) \
  OFFPATH_MPI_FUNCTION(name, waits, seen){"PMPIX_" #name, OFFPATH_FUNCTION_##name},
#define OFFPATH_MPI_EXTENSION(name, waits, seen) OFFPATH_MPI_PERSISTENT(name, waits, seen)
#include <offpath/words/mpi_functions.def>
};

enum { SLOT_COUNT = 2 * sizeof(symbols) / sizeof(symbols[0]) };

extern void* offpath_doorway_slots[SLOT_COUNT] __attribute__((visibility("hidden")));

static pthread_mutex_t resolve_mutex = PTHREAD_MUTEX_INITIALIZER;
static int resolved;
static int serving; /* the back end does */
static offpath_loaded_mpi_t loaded;
static offpath_wait_told_t* wait_told; /* NULL: nobody wants to know when the program waits */
static char missing[SLOT_COUNT];       /* slots still to be filled, at their first call */
static __thread int resolving __attribute__((tls_model("initial-exec")));

/* What an intercepted function does in a process that has no MPI, or whose MPI lacks it and what would do in its place:
 * MPI_ERR_OTHER or alike. */
static int no_such_function(void) { return 16; }

static const char* p_name(unsigned long slot) { return symbols[slot / 2].p_name; }
static const char* mpi_name(unsigned long slot) { return symbols[slot / 2].p_name + 1; }

static int switched_off(void) {
  const char* value = secure_getenv("OFFPATH_ENABLE");
  if (value == NULL) return 0;
  return strcmp(value, "0") == 0 || strcasecmp(value, "off") == 0 || strcasecmp(value, "no") == 0 ||
         strcasecmp(value, "false") == 0;
}

/* One line a job, as far as the launcher tells us the rank. */
static void warn(const char* reason) {
  const char* level = secure_getenv("OFFPATH_LOG");
  if (level != NULL && (strcasecmp(level, "off") == 0 || strcasecmp(level, "error") == 0)) return;
  static const char* const rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof(rank_variables) / sizeof(rank_variables[0]); ++i) {
    const char* rank = secure_getenv(rank_variables[i]);
    if (rank != NULL && strcmp(rank, "0") != 0) return;
  }
  char line[640];
  int length = snprintf(line, sizeof(line) - 1,
                        "offpath warn: the MPI back end was not loaded, all MPI calls stay native: %s", reason);
  if (length > (int)sizeof(line) - 2) length = sizeof(line) - 2;
  line[length++] = '\n';
  if (write(STDERR_FILENO, line, (size_t)length) < 0) return;
}

/* Of several names in turn: a persistent collective is MPI_X or, earlier, MPIX_X. NULL: the library lacks it. */
static void* native_function(const offpath_loaded_mpi_t* mpi, unsigned long slot) {
  void* function = dlsym(mpi->handle, p_name(slot));
  for (unsigned long other = 0; function == NULL && other < SLOT_COUNT; other += 2) {
    if (symbols[other / 2].function == symbols[slot / 2].function) function = dlsym(mpi->handle, p_name(other));
  }
  return function;
}

/* The MPI_X of a tool that is loaded behind us, or NULL. */
static void* tool_function(const offpath_loaded_mpi_t* mpi, unsigned long slot) {
  Dl_info info;
  void* next = dlsym(RTLD_NEXT, mpi_name(slot));
  if (next == NULL || dladdr(next, &info) == 0 || info.dli_fbase == mpi->base) return NULL;
  return next;
}

/* A tool behind us that passes calls on to the library, or NULL. */
static const char* bypassing_tool(const offpath_loaded_mpi_t* mpi) {
  Dl_info info;
  for (unsigned long slot = 0; slot < SLOT_COUNT; slot += 2) {
    void* tool = tool_function(mpi, slot);
    if (tool != NULL && !offpath_uses_pmpi(tool) && dladdr(tool, &info) != 0) return info.dli_fname;
  }
  return NULL;
}

static void fill_slot(unsigned long slot, void* target) {
  __atomic_store_n(&offpath_doorway_slots[slot], target, __ATOMIC_RELEASE);
}

/* What blocks gets a clock around it; where a tool comes first, behind the tool. */
static void time_waits(void) {
  void* timed[OFFPATH_FUNCTION_COUNT] = {NULL};
  if (!serving || wait_told == NULL) return;
  offpath_time_waits(wait_told, timed);
  for (unsigned long slot = 0; slot < SLOT_COUNT; ++slot) {
    void* target = timed[symbols[slot / 2].function];
    if (target != NULL && (slot % 2 == 1 || tool_function(&loaded, slot) == NULL)) fill_slot(slot, target);
  }
}

static void fill_slots(const offpath_loaded_mpi_t* mpi) {
  void* handlers[OFFPATH_FUNCTION_COUNT] = {NULL};
  char reason[512];
  if (!switched_off()) {
    const char* tool = bypassing_tool(mpi);
    if (tool == NULL)
      serving =
          offpath_open_backend(mpi, OFFPATH_BACKEND_ALL, handlers, OFFPATH_FUNCTION_COUNT, reason, sizeof(reason)) == 0;
    else
      snprintf(reason, sizeof(reason),
               "'%s' stands behind Offpath and calls nothing by PMPI (what it finds by dlsym is past Offpath). Put it "
               "in front, in LD_PRELOAD",
               tool);
    if (!serving) {
      warn(reason);
      memset(handlers, 0, sizeof(handlers));
    }
  }
  for (unsigned long slot = 0; slot < SLOT_COUNT; ++slot) {
    void* target = slot % 2 == 0 ? tool_function(mpi, slot) : NULL;
    if (target == NULL) target = handlers[symbols[slot / 2].function];
    if (target == NULL) target = native_function(mpi, slot);
    missing[slot] = target == NULL;
    if (target != NULL) fill_slot(slot, target);
  }
  loaded = *mpi;
  resolved = 1;
  time_waits();
}

static void fill_missing(void) {
  void* handlers[OFFPATH_FUNCTION_COUNT] = {NULL};
  char reason[512];
  const int found = !serving && offpath_open_backend(&loaded, OFFPATH_BACKEND_MISSING, handlers, OFFPATH_FUNCTION_COUNT,
                                                     reason, sizeof(reason)) == 0;
  for (unsigned long slot = 0; slot < SLOT_COUNT; ++slot) {
    void* target = found ? handlers[symbols[slot / 2].function] : NULL;
    /* Functions that the library has may have to know of what it lacks. */
    if (!missing[slot] && (target == NULL || (slot % 2 == 0 && tool_function(&loaded, slot) != NULL))) continue;
    fill_slot(slot, target == NULL ? (void*)&no_such_function : target);
    missing[slot] = 0;
  }
}

void* offpath_doorway_resolve(unsigned long slot) {
  const int saved_errno = errno;
  void* target = NULL;
  if (resolving) {
    /* MPI called by something that runs while the back end is being loaded, on this thread: pass it on as it is. */
    const offpath_loaded_mpi_t mpi = offpath_locate_mpi();
    target = mpi.handle == NULL ? NULL : native_function(&mpi, slot);
    if (target == NULL) target = (void*)&no_such_function;
  } else {
    resolving = 1;
    pthread_mutex_lock(&resolve_mutex);
    if (!resolved) {
      const offpath_loaded_mpi_t mpi = offpath_locate_mpi();
      if (mpi.handle != NULL) fill_slots(&mpi);
    }
    if (resolved && missing[slot]) fill_missing();
    /* No MPI yet: it may be opened later, so nothing is remembered. */
    target = resolved ? offpath_doorway_slots[slot] : (void*)&no_such_function;
    pthread_mutex_unlock(&resolve_mutex);
    resolving = 0;
  }
  errno = saved_errno;
  return target;
}

/* For liboffpath, which finds it with dlsym once a session of the program has tasks. Until then no call has a clock. The first
 * that asks is told. */
__attribute__((visibility("default"))) void offpath_frontend_tell_of_waits(offpath_wait_told_t* told) {
  const int saved_errno = errno;
  pthread_mutex_lock(&resolve_mutex);
  if (wait_told == NULL) {
    wait_told = told;
    time_waits();
  }
  pthread_mutex_unlock(&resolve_mutex);
  errno = saved_errno;
}
