/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the doorway (liboffpath_mpi.so) and a back end (liboffpath_mpi_<mpi>.so) say to each other: one call, made by
 * the doorway when the first intercepted function is called. Both come from one build; the sizes are checked anyway.
 */
#ifndef OFFPATH_FRONTENDS_MPI_BACKEND_H
#define OFFPATH_FRONTENDS_MPI_BACKEND_H

#include "idle/idle_calls.h"
#include "client/told.h"
#include "device/upcall.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
#define OFFPATH_MPI_FUNCTION(name, waits, seen) OFFPATH_FUNCTION_##name,
#include <offpath/words/mpi_functions.def>
  OFFPATH_FUNCTION_COUNT
};

typedef struct offpath_backend {
  uint32_t struct_bytes;
  uint32_t function_count;
  uint32_t only_missing; /* in: what the library lacks, by calls of what it has, and what has to know of that */
  void* mpi;             /* in: dlopen handle of the loaded MPI library */
  void** handlers;       /* out: function_count entries; NULL: the native function */
  uint64_t (*service_cpu_ns)(void); /* out */
  int (*job_token)(uint8_t* token); /* out */
  /* out: MPI calls of target regions; NULL where there are none */
  void (*serve_upcall)(offpath_upcall_request_t* request);
  void (*upcall_channel_lost)(uint64_t channel);
  void (*mark_region)(const char* name, int begins); /* out: of include/offpath/region.h; NULL: nothing is recorded */
  /* out: tells of waits from now on, and fills the handlers that do it, over what it has filled before */
  void (*time_waits)(offpath_wait_told_t* told, void** handlers);
  offpath_rest_t* rest; /* out: asked where the library has looked and found nothing (idle/idle_calls.h) */
} offpath_backend_t;

/* Fills *backend. Returns 0, or stays native: -1, this back end cannot serve the loaded MPI, or that it is in use already. */
enum { OFFPATH_BACKEND_TOO_LATE = 1 };
typedef int offpath_backend_open_function(offpath_backend_t* backend);
#define OFFPATH_BACKEND_OPEN "offpath_mpi_backend_open"

#ifdef __cplusplus
}
#endif
#endif
