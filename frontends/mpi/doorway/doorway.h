/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The doorway: exports MPI_X and PMPI_X for every X of mpi_functions.def, and MPIX_X and PMPIX_X for the persistent
 * collectives and extensions, as a jump through a table (trampolines.S). All entries first point to the resolver, which the first call
 * of any of them runs, on whichever thread and however early. It has no constructor: a program that never calls MPI is
 * not touched.
 *
 *   MPI_X   another preloaded tool's MPI_X where there is one behind us, else as PMPI_X. All stays native if it does not
 *           come back by the profiling interface: it would pass our requests and messages on to the library
 *   PMPI_X  the back end's handler, or the native function when Offpath is off
 *
 * What the loaded library lacks works all the same, for a program may find it here at run time and prefer it: the back
 * end translates it to what the library has, also when Offpath is off.
 */
#ifndef OFFPATH_FRONTENDS_MPI_DOORWAY_H
#define OFFPATH_FRONTENDS_MPI_DOORWAY_H

/* Slot order: MPI_X and PMPI_X in turns, then MPIX_X and PMPIX_X if there are any, in the order of mpi_functions.def. */
#define OFFPATH_SLOT_BYTES 8

#ifndef __ASSEMBLER__
#include "mpi/functions/backend.h"

#include <stddef.h>

/* Where the loaded MPI is and which one. */
typedef enum offpath_mpi_kind {
  OFFPATH_MPI_NONE,
  OFFPATH_MPI_OPENMPI,
  OFFPATH_MPI_MPICH,
  OFFPATH_MPI_STANDARD_ABI /* whoever made it */
} offpath_mpi_kind_t;
typedef struct offpath_loaded_mpi {
  offpath_mpi_kind_t kind;
  void* handle; /* from dlopen; kept open */
  void* base;   /* load address, as dladdr reports it */
} offpath_loaded_mpi_t;

/* Finds the MPI library among the loaded objects by the symbols they define, also one that was opened with RTLD_LOCAL.
 */
offpath_loaded_mpi_t offpath_locate_mpi(void);

/* Whether the library of that function knows MPI's profiling interface. */
int offpath_uses_pmpi(const void* function);

/* Opens the back end next to this library. Returns 0 and fills handlers (count entries), or -1 with a reason and what
 * to do. MISSING: only what the library lacks, and what has to know of that. */
typedef enum offpath_backend_part { OFFPATH_BACKEND_ALL, OFFPATH_BACKEND_MISSING } offpath_backend_part_t;
int offpath_open_backend(const offpath_loaded_mpi_t* mpi, offpath_backend_part_t part, void** handlers, unsigned count,
                         char* reason, size_t reason_capacity);

/* Of the open back end: who is told when the program waits, and the handlers that tell (backend.h). */
void offpath_time_waits(offpath_wait_told_t* told, void** handlers);

/* Called by the lazy entries: returns where slot number `slot` jumps to. errno is kept. */
void* offpath_doorway_resolve(unsigned long slot);
#endif
#endif
