// SPDX-License-Identifier: BSD-3-Clause
// The native MPI as a table of function pointers.
//
// Threads: filled once, by the doorway's resolver, before any handler can run; constant afterwards.
#pragma once

#include "attach/inside.hpp"

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

using attach::Inside;

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

}  // namespace offpath::mpi
