// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/native.hpp"

#include "mpi/functions/backend.h"
#include "mpi/native/stand_ins.hpp"
#include "mpi/native/substitutes.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace offpath::mpi {

Native native;

bool Native::load(void* library) {
  bool complete = true;
  const auto find = [library](auto& symbol, const char* name) {
    symbol = reinterpret_cast<std::remove_reference_t<decltype(symbol)>>(dlsym(library, name));
    return symbol != nullptr;
  };
#define OFFPATH_MPI_FUNCTION(name, waits, seen) complete = find(name, "PMPI_" #name) && complete;
#define OFFPATH_MPI_PERSISTENT(name, waits, seen) \
  if (!find(name, "PMPI_" #name)) find(name, "PMPIX_" #name);
#define OFFPATH_MPI_EXTENSION(name, waits, seen) OFFPATH_MPI_PERSISTENT(name, waits, seen)
#define OFFPATH_MPI_LARGE(name, waits, seen) find(name, "PMPI_" #name);
#define OFFPATH_MPI_LARGE_REQUEST(name, waits, seen) OFFPATH_MPI_LARGE(name, waits, seen)
#define OFFPATH_MPI_LARGE_FUNCTION(name, waits, seen) OFFPATH_MPI_LARGE(name, waits, seen)
#define OFFPATH_MPI_LARGE_OBSERVED(name, waits, seen) OFFPATH_MPI_LARGE(name, waits, seen)
#define OFFPATH_MPI_LARGE_TIMED(name, waits, seen) OFFPATH_MPI_LARGE(name, waits, seen)
#include <offpath/words/mpi_functions.def>
#define OFFPATH_MPI_FUNCTION(name) complete = find(name, "PMPI_" #name) && complete;
#include "mpi/functions/natives.def"
#ifdef OPEN_MPI
  if (find(call_no_more, "opal_progress_unregister")) find(call_in_rounds, "opal_progress_register_lp");
  find(yield_when_idle, "opal_progress_set_yield_when_idle");
  if (find(is_revoked, "PMPIX_Comm_is_revoked") && find(acknowledge, "PMPIX_Comm_failure_ack"))
    find(fault_tolerant, "ompi_ftmpi_enabled");
#endif
  stands_in = add_stand_ins(this);
  add_substitutes(this);
  return complete;
}

Native Native::under(void* const* handlers) const {
  Native result = *this;
  const auto set = [](auto& function, void* handler) {
    if (handler != nullptr) function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(handler);
  };
#define OFFPATH_MPI_FUNCTION(name, waits, seen) set(result.name, handlers[OFFPATH_FUNCTION_##name]);
#include <offpath/words/mpi_functions.def>
  return result;
}

}  // namespace offpath::mpi
