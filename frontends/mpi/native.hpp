// SPDX-License-Identifier: BSD-3-Clause
// The native MPI as a table of function pointers, and the guard that tells our own use of it from the application's.
//
// Threads: filled once, by the doorway's resolver, before any handler can run; constant afterwards.
#pragma once

#include "base/result.hpp"

#include <mpi.h>
#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#define OFFPATH_MPI_PERSISTENT_NAME(name) MPIX_##name
#else
#define OFFPATH_MPI_PERSISTENT_NAME(name) MPI_##name
#endif
#if MPI_VERSION >= 4
#define OFFPATH_MPI_IF_LARGE(...) __VA_ARGS__
#else
#define OFFPATH_MPI_IF_LARGE(...)
#endif

namespace offpath::mpi {

struct Native {
#define OFFPATH_MPI_FUNCTION(name) decltype(&MPI_##name) name;
#define OFFPATH_MPI_PERSISTENT(name) decltype(&OFFPATH_MPI_PERSISTENT_NAME(name)) name;
#define OFFPATH_MPI_LARGE(name) OFFPATH_MPI_IF_LARGE(decltype(&MPI_##name) name;)
#include "functions.def"
#define OFFPATH_MPI_FUNCTION(name) decltype(&MPI_##name) name;
#include "natives.def"

  // From a dlopen handle of the loaded MPI. False: a function is missing. Persistent collectives may be: nullptr.
  bool load(void* library);
};

extern Native native;

// Marks this thread as doing our own work while it lives, and keeps errno. MPI calls that reach our handlers meanwhile
// come from the native library's insides and pass straight through. Never alive during a call that may run a callback
// of the application (attribute callbacks, error handlers): what those call is the application's.
class Inside {
 public:
  Inside() { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool here() { return depth_ != 0; }

 private:
  base::ErrnoGuard errno_guard_;
  static thread_local int depth_;
};

}  // namespace offpath::mpi
