/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "idle/idle_calls.h"
#include "mpi/doorway/doorway.h"
#include "mpi/functions/backend.h"
#include "offpath/offpath.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t (*volatile service_cpu_ns)(void);
static int (*volatile job_token)(uint8_t*);
static void (*volatile serve_upcall)(offpath_upcall_request_t*);
static void (*volatile upcall_channel_lost)(uint64_t);
static void (*volatile mark_region)(const char*, int);
static void (*time_waits)(offpath_wait_told_t*, void**);

/* For programs that measure: processor time of this node's service so far, 0 without one. Found with dlsym. */
__attribute__((visibility("default"))) uint64_t offpath_frontend_service_cpu_ns(void) {
  uint64_t (*function)(void) = service_cpu_ns;
  return function == NULL ? 0 : function();
}

/* For other front ends of this process, which find it with dlsym (attach::Terms). 1: the job has a service on this
 * node, and token[OFFPATH_TOKEN_BYTES] leads there; else 0. */
__attribute__((visibility("default"))) int offpath_frontend_job_token(uint8_t* token) {
  int (*function)(uint8_t*) = job_token;
  return function == NULL ? 0 : function(token);
}

/* The plugin for target regions finds these two in the global scope. */
__attribute__((visibility("default"))) void offpath_serve_upcall(offpath_upcall_request_t* request) {
  void (*function)(offpath_upcall_request_t*) = serve_upcall;
  if (function == NULL)
    request->answer(request, OFFPATH_ERR_ARGUMENT);
  else
    function(request);
}

__attribute__((visibility("default"))) void offpath_upcall_channel_lost(uint64_t channel) {
  void (*function)(uint64_t) = upcall_channel_lost;
  if (function != NULL) function(channel);
}

/* What <offpath/region.h> finds. */
__attribute__((visibility("default"))) void offpath_region_mark(const char* name, int begins) {
  void (*function)(const char*, int) = mark_region;
  if (function == NULL) return;
  const int saved_errno = errno;
  function(name, begins);
  errno = saved_errno;
}

void offpath_time_waits(offpath_wait_told_t* told, void** handlers) {
  if (time_waits != NULL) time_waits(told, handlers);
}

int offpath_open_backend(const offpath_loaded_mpi_t* mpi, offpath_backend_part_t part, void** handlers, unsigned count,
                         char* reason, size_t reason_capacity) {
  static const char reinstall[] = "Reinstall Offpath or set OFFPATH_ENABLE=0";
  Dl_info own;
  char path[PATH_MAX];
  if (dladdr((const void*)&offpath_open_backend, &own) == 0 || own.dli_fname == NULL) {
    snprintf(reason, reason_capacity, "own folder unknown. %s", reinstall);
    return -1;
  }
  const char* slash = strrchr(own.dli_fname, '/');
  const int folder = slash == NULL ? 0 : (int)(slash - own.dli_fname + 1);
  static const char* const names[] = {
      [OFFPATH_MPI_OPENMPI] = "openmpi", [OFFPATH_MPI_MPICH] = "mpich", [OFFPATH_MPI_STANDARD_ABI] = "abi"};
  const char* profile = secure_getenv("OFFPATH_PROFILE"); /* records instead of offloading */
  const char* purpose = profile != NULL && *profile != '\0' ? "profile" : "mpi";
  snprintf(path, sizeof(path), "%.*sliboffpath_%s_%s.so", folder, own.dli_fname, purpose, names[mpi->kind]);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char* text = dlerror();
    snprintf(reason, reason_capacity, "%s. %s", text == NULL ? path : text, reinstall);
    return -1;
  }
  offpath_backend_open_function* open_function = (offpath_backend_open_function*)dlsym(library, OFFPATH_BACKEND_OPEN);
  offpath_backend_t backend = {sizeof(backend),
                               count,
                               part == OFFPATH_BACKEND_MISSING,
                               mpi->handle,
                               handlers,
                               NULL,
                               NULL,
                               NULL,
                               NULL,
                               NULL,
                               NULL,
                               NULL};
  const int code = open_function == NULL ? -1 : open_function(&backend);
  if (code == OFFPATH_BACKEND_TOO_LATE) {
    snprintf(reason, reason_capacity,
             "MPI_Init was called past Offpath, in the MPI library itself (dlsym, or dlopen with RTLD_DEEPBIND). Call "
             "it where the program finds it, or set OFFPATH_ENABLE=0");
    return -1;
  }
  if (code != 0) {
    snprintf(reason, reason_capacity, "%s does not fit this MPI or this doorway. %s", path, reinstall);
    return -1;
  }
  if (part == OFFPATH_BACKEND_MISSING) return 0;
  service_cpu_ns = backend.service_cpu_ns;
  job_token = backend.job_token;
  serve_upcall = backend.serve_upcall;
  upcall_channel_lost = backend.upcall_channel_lost;
  mark_region = backend.mark_region;
  time_waits = backend.time_waits;
  offpath_rest_in_idle_calls(backend.rest);
  return 0;
}
