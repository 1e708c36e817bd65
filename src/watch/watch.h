/* SPDX-License-Identifier: BSD-3-Clause
 *
 * liboffpath_watch.so, preloaded: keeps what a program may expect of private memory true of pages that Offpath has moved
 * into the memory that a client shares with its service (docs/design/0017-mapped-memory.md).
 *
 *   mmap, munmap, mremap, shmat   passed on; what they do to covered memory is counted: doubts()
 *   madvise                       pages that are given up are private and zero afterwards, as those of any program
 *   mremap                        resizes memory that is several mappings to the kernel
 *   fork                          the child gets a copy, before fork() returns in either process
 *
 * Without covered memory each of these costs two loads. Hooks take no lock, use no heap and keep errno. A client finds
 * the functions below by dlsym(RTLD_DEFAULT, OFFPATH_WATCH_OPEN) and moves nothing where there are none.
 */
#ifndef OFFPATH_WATCH_WATCH_H
#define OFFPATH_WATCH_WATCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct offpath_watch {
  uint32_t struct_bytes;
  /* Are the hooks called by those who call the functions? Begins to look, or says which were called since: mmap 1,
   * munmap 2, mremap 4, madvise 8. */
  uint32_t (*probe)(int begin);
  /* The memory of a client: its file, and where the client itself has it mapped. A number; -1: there is no room. */
  int (*join)(int memfd, uint64_t mapping, uint64_t bytes);
  /* The client leaves. pages_stay: the program goes on using pages of it; they are watched for ever. */
  void (*leave)(int source, int pages_stay);
  /* Around moving: no other thread forks, so no child sees half of it; nor does one keep or release anything. */
  void (*begin)(void);
  void (*end)(void);
  /* [begin, end) are pages of a joined file; all of them have to be covered. A number, or -1: there is no room. */
  int (*cover)(uint64_t begin, uint64_t end);
  void (*extend)(int entry, uint64_t end);
  void (*uncover)(int entry);
  /* Grows when something happens to covered memory, so that it may be other memory now. */
  uint32_t (*doubts)(void);
  /* How often the process has forked with covered memory. */
  uint32_t (*forks)(void);
  /* Somebody else may write [begin, end) at any time, or has it registered with a device: no client moves any of it, until
   * release() of the same, as often as that. A child of fork() has nothing kept. */
  void (*keep)(uint64_t begin, uint64_t end);
  void (*release)(uint64_t begin, uint64_t end);
  /* Whether any of it is kept, until end(). */
  int (*is_kept)(uint64_t begin, uint64_t end);
} offpath_watch_t;

#define OFFPATH_WATCH_OPEN "offpath_watch_open"
typedef const offpath_watch_t* offpath_watch_open_function(void);

#ifdef __cplusplus
}
#endif
#endif
