// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lifetime/seen.hpp"

#include "mpi/functions/backend.h"
#include "mpi/job/counters.hpp"
#include "mpi/native/native.hpp"

namespace offpath::mpi {
namespace {

Native below_counting;

template <auto member, Seen kind>
struct Counted;
template <typename... Arguments, int (*Native::*member)(Arguments...), Seen kind>
struct Counted<member, kind> {
  static int call(Arguments... arguments) {
    if (Counters::counts()) counters.count_seen(kind);
    return (below_counting.*member)(arguments...);
  }
};

// A library may open one by MPI's own functions, which are not the program's. They are ours all the same: a rank that
// blocks in them has to answer where the service is lost.
int open_file(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file) {
  if (Counters::counts()) counters.count_seen(Seen::files);
  Counters::in_library = true;
  const int code = below_counting.File_open(comm, name, mode, info, file);
  Counters::in_library = false;
  return code;
}

// A message that the library has taken, so that its datatype may be asked for its size.
void count_message(int64_t count, MPI_Datatype type) {
  counters.count_seen(Seen::messages);
  MPI_Count size = 0;
  if (count <= 0 || type == MPI_DATATYPE_NULL || native.Type_size_x(type, &size) != MPI_SUCCESS || size <= 0) return;
  const auto most = static_cast<int64_t>(kLongMessageBytes);
  if (count >= (most + size - 1) / size) counters.count_seen(Seen::long_messages);
}

template <auto member>
struct CountedMessage;
template <typename Count, typename... Arguments, int (*Native::*member)(const void*, Count, MPI_Datatype, Arguments...)>
struct CountedMessage<member> {
  static int call(const void* buffer, Count count, MPI_Datatype type, Arguments... arguments) {
    const int code = (below_counting.*member)(buffer, count, type, arguments...);
    if (code == MPI_SUCCESS && Counters::counts()) count_message(static_cast<int64_t>(count), type);
    return code;
  }
};

template <auto member, Seen kind>
void put(void*& handler) {
  if constexpr (kind == Seen::files) {
    handler = reinterpret_cast<void*>(&open_file);
  } else if constexpr (kind == Seen::messages) {
    handler = reinterpret_cast<void*>(&CountedMessage<member>::call);
  } else if constexpr (kind != Seen::nothing) {
    handler = reinterpret_cast<void*>(&Counted<member, kind>::call);
  }
}

}  // namespace

void count_calls(void** handlers) {
  below_counting = native.under(handlers);
#define OFFPATH_MPI_FUNCTION(name, waits, seen) put<&Native::name, Seen::seen>(handlers[OFFPATH_FUNCTION_##name]);
#include <offpath/words/mpi_functions.def>
}

}  // namespace offpath::mpi
