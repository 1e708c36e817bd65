// SPDX-License-Identifier: BSD-3-Clause
// A file's view as its process has set it: where the data bytes of the view lie in the file.
//
// Threads: a value.
#pragma once

#include "mpi/types/datatype.hpp"

#include <mpi.h>

#include <cstdint>
#include <optional>

namespace offpath::mpi {

struct View {
  uint64_t displacement = 0;
  uint64_t etype_bytes = 1;
  TypeRef filetype;  // whose ranges are the layout; null: contiguous
};

// The shortest stretches of a view that the service writes one by one. What lies in shorter ones the libraries sieve, or exchange
// between ranks first, which is faster (docs/performance/files.md).
inline constexpr uint64_t kShortestStretch = 32 << 10;

// Nothing: a view whose transfers stay native. Inside. May throw bad_alloc.
std::optional<View> view_of(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                            const char* representation, MPI_Comm comm);

}  // namespace offpath::mpi
