// SPDX-License-Identifier: BSD-3-Clause
// The native MPI as a table of function pointers.
//
// Threads: filled once, by the doorway's resolver, before any handler can run; constant afterwards.
#pragma once

#include "attach/inside.hpp"
#include "mpi/native/prototypes.h"

#include <mpi.h>
#if defined(OPEN_MPI) && !defined(OFFPATH_MPI_HAS_PERSISTENT)
#include <mpi-ext.h>
#define OFFPATH_MPI_PERSISTENT_NAME(name) MPIX_##name
#else
#define OFFPATH_MPI_PERSISTENT_NAME(name) MPI_##name
#endif

#include <type_traits>

namespace offpath::mpi {

using attach::Inside;
using attach::Meeting;

struct Native {
#define OFFPATH_MPI_FUNCTION(name, waits, seen) decltype(&MPI_##name) name;
#define OFFPATH_MPI_PERSISTENT(name, waits, seen) decltype(&OFFPATH_MPI_PERSISTENT_NAME(name)) name;
#define OFFPATH_MPI_EXTENSION(name, waits, seen) decltype(&MPIX_##name) name;
#include <offpath/words/mpi_functions.def>
#define OFFPATH_MPI_FUNCTION(name) decltype(&MPI_##name) name;
#include "mpi/functions/natives.def"

  // Makes the library call a function in the rounds of everything of its own that waits, until the other one. Open MPI's;
  // nullptr: it has no such thing. 0: it does.
  int (*call_in_rounds)(int (*function)()) = nullptr;
  int (*call_no_more)(int (*function)()) = nullptr;
  bool (*yield_when_idle)(bool yields) = nullptr;  // returns what was so before
  // Open MPI with fault tolerance (ULFM), once MPI_Init has been called: it tells programs of lost processes, and lets them go on.
  bool tells_of_losses() const { return fault_tolerant != nullptr && *fault_tolerant; }
  const bool* fault_tolerant = nullptr;
  // With it: the first, and that messages of any source may be asked for again although one is lost.
  int (*is_revoked)(MPI_Comm comm, int* revoked) = nullptr;
  int (*acknowledge)(MPI_Comm comm) = nullptr;
  bool stands_in = false;  // some persistent collective is a stand-in

  // From a dlopen handle of the loaded MPI. False: a function is missing. Persistent collectives have stand-ins,
  // large counts substitutes.
  bool load(void* library);
  // The same but for those that a table of handlers (functions/backend.h) has something for.
  Native under(void* const* handlers) const;
};

extern Native native;

// "MPI_Put" of &Native::Put; for what mpi_functions.def lists.
template <typename Function>
consteval const char* name_of(Function Native::*function) {
#define OFFPATH_MPI_FUNCTION(name, waits, seen)                                \
  if constexpr (std::is_same_v<decltype(&Native::name), Function Native::*>) { \
    if (function == &Native::name) return "MPI_" #name;                        \
  }
#include <offpath/words/mpi_functions.def>
  return "";
}

}  // namespace offpath::mpi
