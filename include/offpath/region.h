/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names for parts of a program, in the traces and profiles that Offpath records of it:
 *
 *   offpath_region_begin("assemble");
 *   ...
 *   offpath_region_end("assemble");
 *
 * Nothing is linked. Where the program runs without Offpath, or nothing is recorded, a call costs a look at a variable.
 * Recorded is what a rank does between MPI_Init and MPI_Finalize, and not what a child process of it does. Any thread may call. Regions of a thread lie inside each other:
 * with one that ends, those end that began inside it. A name has up to 255 bytes; a program has up to 10000 of them.
 */
#ifndef OFFPATH_REGION_H
#define OFFPATH_REGION_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*offpath_region_mark_t)(const char* name, int begins);

/* What the preloaded library offers, looked for once; else a function that does nothing. */
static inline void offpath_region_mark_nothing(const char* name, int begins) {
  (void)name;
  (void)begins;
}

static inline offpath_region_mark_t offpath_region_find(void) {
  static offpath_region_mark_t found;
  offpath_region_mark_t mark = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (mark == NULL) {
    void* program = dlopen(NULL, RTLD_LAZY);
    void* symbol = program == NULL ? NULL : dlsym(program, "offpath_region_mark");
    mark = offpath_region_mark_nothing;
    if (symbol != NULL) memcpy(&mark, &symbol, sizeof(mark));
    __atomic_store_n(&found, mark, __ATOMIC_RELAXED);
  }
  return mark;
}

static inline void offpath_region_begin(const char* name) { offpath_region_find()(name, 1); }

/* Ends the innermost region of that name. */
static inline void offpath_region_end(const char* name) { offpath_region_find()(name, 0); }

#ifdef __cplusplus
}
#endif
#endif
