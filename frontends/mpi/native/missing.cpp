// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/missing.hpp"

#include <dlfcn.h>

namespace offpath::mpi {

void set_missing(offpath_backend_t* backend) {
  const auto set = [backend](unsigned function, const char* name, auto* substitute) {
    if (dlsym(backend->mpi, name) == nullptr) backend->handlers[function] = reinterpret_cast<void*>(substitute);
  };
#define OFFPATH_MPI_FUNCTION(name)
#define OFFPATH_MPI_LARGE(name) set(OFFPATH_FUNCTION_##name, "PMPI_" #name, native.name);
#define OFFPATH_MPI_LARGE_FUNCTION(name) OFFPATH_MPI_LARGE(name)
#define OFFPATH_MPI_LARGE_OBSERVED(name) OFFPATH_MPI_LARGE(name)
#include "mpi/functions/functions.def"
}

}  // namespace offpath::mpi
