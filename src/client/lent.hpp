// SPDX-License-Identifier: BSD-3-Clause
// Lent: shared memory that a program has for its own, as it asked for memory by an interface of its own (MPI_Alloc_mem).
// It is as private memory to the program: its pages come when they are touched, it stays when the session goes, and a child
// of fork() gets copies before fork() returns in either process.
//
//   [ ... 16 bytes of header ][memory, whole pages][a private page]
//
// free() and realloc() of the C library are the wrong functions for it, and programs call them, as they get away with it
// elsewhere. So the header looks to them like that of a mapping of their own, of no bytes: free() unmaps nothing, and
// realloc() cannot resize it, as the page behind is not shared, and copies.
//
// Threads: any. Locks: its own, then a session's.
#pragma once

#include "base/fd.hpp"
#include "base/memfd.hpp"
#include "watch/gate.h"

#include <pthread.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

struct offpath_session;

namespace offpath::client {

class Lent {
 public:
  static Lent& of_process();

  // Null: there is no room for it, or the process forks again and again. `alignment`: a power of two.
  void* lend(offpath_session& session, uint64_t bytes, uint64_t alignment);
  // False: it was not lent. Its session may have gone.
  bool take_back(void* address);
  // The session goes: what of its memory stays mapped, by address.
  std::vector<base::Memfd::Stretch> leave(const offpath_session& session);

 private:
  struct Block {
    offpath_session* session;  // null: it has gone, or is the parent's
    std::shared_ptr<base::Fd> file;
    base::Memfd::Stretch all;  // header and guard included
    uint8_t* memory;
    uint64_t bytes;        // of the memory, whole pages
    uint64_t file_offset;  // of `all`
  };

  bool prepare(offpath_session& session, uint64_t bytes, uint64_t alignment, Block& block);
  static void give_back(const Block& block);
  static void copy(const Block& block);
  static void before_fork();
  static void after_in_parent();
  static void after_in_child();

  // A signal handler may fork on a thread that holds it.
  pthread_mutex_t mutex_ = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  std::map<void*, Block> blocks_;  // by memory
  uint32_t forks_ = 0;             // with something lent
  bool follows_forks_ = false;
  bool locked_by_fork_ = false;
  offpath_gate_t copied_{{-1, -1}};
};

}  // namespace offpath::client
