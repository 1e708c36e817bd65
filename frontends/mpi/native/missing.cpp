// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/missing.hpp"

#include <dlfcn.h>

namespace offpath::mpi {

void set_missing(offpath_backend_t* backend) {
  const auto set = [backend](unsigned function, const char* name, const char* old_name, auto* ours) {
    void* theirs = dlsym(backend->mpi, name);
    if (theirs == nullptr) theirs = dlsym(backend->mpi, old_name);
    if (reinterpret_cast<void*>(ours) != theirs) backend->handlers[function] = reinterpret_cast<void*>(ours);
  };
#define OFFPATH_MPI_FUNCTION(name, waits, seen) \
  set(OFFPATH_FUNCTION_##name, "PMPI_" #name, "PMPIX_" #name, native.name);
#include <offpath/words/mpi_functions.def>
}

}  // namespace offpath::mpi
