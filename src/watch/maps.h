/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What lies where in this process, as the kernel says. No heap, no library call that may be interposed: usable in
 * hooks of memory functions and after a fork. Any thread.
 */
#ifndef OFFPATH_WATCH_MAPS_H
#define OFFPATH_WATCH_MAPS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct offpath_map {
  uint64_t begin, end;
  uint64_t offset, device, inode; /* of a file; inode 0: none */
  char permissions[8];            /* "rw-p" */
  char name[24];                  /* its beginning: a path, "[heap]", "" */
} offpath_map_t;

/* Both: nonzero ends the walk. detail: "AnonHugePages:  2048 kB" and so on, of the mapping visited last; may be NULL. */
typedef struct offpath_maps_visitor {
  int (*mapping)(const offpath_map_t* map, void* argument);
  int (*detail)(const char* line, void* argument);
  void* argument;
} offpath_maps_visitor_t;

/* `path`: /proc/self/maps, or smaps for the details. Ascending; mappings may be changed meanwhile.
 * Returns 0, or -1 when the file cannot be read. errno is kept. */
int offpath_maps_visit(const char* path, const offpath_maps_visitor_t* visitor);

#ifdef __cplusplus
}
#endif
#endif
