/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "watch/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_BYTES = 160 }; /* a longer path is cut */

static uint64_t number(const char** text, unsigned base) {
  uint64_t value = 0;
  for (;; ++*text) {
    const char c = **text;
    unsigned digit;
    if (c >= '0' && c <= '9')
      digit = (unsigned)(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = (unsigned)(c - 'a') + 10;
    else
      return value;
    if (digit >= base) return value;
    value = value * base + digit;
  }
}

static int skip(const char** text, char c) {
  if (**text != c) return 0;
  ++*text;
  return 1;
}

/* begin-end rwxp offset major:minor inode   name */
static int parse(const char* at, offpath_map_t* map) {
  memset(map, 0, sizeof(*map));
  map->begin = number(&at, 16);
  if (!skip(&at, '-')) return 0;
  map->end = number(&at, 16);
  if (!skip(&at, ' ')) return 0;
  for (int i = 0; i < 4 && *at != '\0'; ++i) map->permissions[i] = *at++;
  if (!skip(&at, ' ')) return 0;
  map->offset = number(&at, 16);
  if (!skip(&at, ' ')) return 0;
  const uint64_t major = number(&at, 16);
  if (!skip(&at, ':')) return 0;
  map->device = major << 32 | number(&at, 16);
  if (!skip(&at, ' ')) return 0;
  map->inode = number(&at, 10);
  while (skip(&at, ' ')) {
  }
  for (size_t i = 0; i + 1 < sizeof(map->name) && *at != '\0'; ++i) map->name[i] = *at++;
  return 1;
}

static int take_line(const char* line, const offpath_maps_visitor_t* visitor) {
  offpath_map_t map;
  if (parse(line, &map)) return visitor->mapping(&map, visitor->argument);
  return visitor->detail == NULL ? 0 : visitor->detail(line, visitor->argument);
}

int offpath_maps_visit(const char* path, const offpath_maps_visitor_t* visitor) {
  const int saved_errno = errno;
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  int result = file < 0 ? -1 : 0;
  char buffer[4096], line[LINE_BYTES];
  size_t length = 0;
  int over = file < 0;
  while (!over) {
    const long got = syscall(SYS_read, file, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) result = -1;
    if (got <= 0) break;
    for (long i = 0; i < got && !over; ++i) {
      if (buffer[i] != '\n') {
        if (length + 1 < sizeof(line)) line[length++] = buffer[i];
        continue;
      }
      line[length] = '\0';
      length = 0;
      over = take_line(line, visitor);
    }
  }
  if (file >= 0) syscall(SYS_close, file);
  errno = saved_errno;
  return result;
}
