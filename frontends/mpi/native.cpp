// SPDX-License-Identifier: BSD-3-Clause
#include "native.hpp"

#include <dlfcn.h>

namespace offpath::mpi {

Native native;
thread_local int Inside::depth_ = 0;

bool Native::load(void* library) {
  bool complete = true;
#define OFFPATH_MPI_FUNCTION(name)                                        \
  name = reinterpret_cast<decltype(name)>(dlsym(library, "PMPI_" #name)); \
  complete = complete && name != nullptr;
#include "functions.def"
#include "natives.def"
#undef OFFPATH_MPI_FUNCTION
  return complete;
}

}  // namespace offpath::mpi
