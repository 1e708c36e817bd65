// SPDX-License-Identifier: BSD-3-Clause
// How a function that takes requests becomes a handler behind the doorway. Internal to requests/.
#pragma once

#include "mpi/job/counters.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/standing.hpp"

#include <new>

namespace offpath::mpi {

// Moves on requests of the library's that the application has freed.
void move_freed();

inline void move_ours() {
  if (offloader.needs_attention()) offloader.progress();
}

// Handlers throw nothing; error handlers of the program may. Apart from what follows, which needs no room on the stack.
template <auto ours, typename... Arguments>
[[gnu::noinline]] int complete_ours(Arguments... arguments) {
  try {
    move_freed();
    return ours(arguments...);
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  }
}

// Nothing of ours anywhere: a few loads, then the native function.
template <auto function, auto ours, typename... Arguments>
int complete(Arguments... arguments) {
  const bool none = !offloader.has_requests() && standings.empty();
  if (none || Inside::here()) return (native.*function)(arguments...);
  return complete_ours<ours>(arguments...);
}

template <auto function, auto ours, typename... Arguments>
int complete_counted(Arguments... arguments) {
  counters.count_wait();
  return complete<function, ours>(arguments...);
}

// In namespace handlers: the native function, or `ours` where there is something of ours.
#define OFFPATH_HANDLES(name, ours) const decltype(Native::name) name = &complete<&Native::name, &ours>;
#define OFFPATH_WAITS(name, ours) const decltype(Native::name) name = &complete_counted<&Native::name, &ours>;

}  // namespace offpath::mpi
