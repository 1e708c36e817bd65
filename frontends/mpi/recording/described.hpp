// SPDX-License-Identifier: BSD-3-Clause
// From a collective's arguments to what a profile says of it.
#pragma once

#include "mpi/native/arguments.hpp"
#include "mpi/recording/log.hpp"

namespace offpath::mpi::recording {

// How a collective states its sizes.
enum class Shape : uint8_t {
  nothing,
  vector,
  vector_by_rank,
  even,
  gather,
  scatter,
  allgather,
  gatherv,
  scatterv,
  uneven
};

struct Kind {
  const char* name;  // as the policy has it
  Shape shape;
};

Posted describe(const Kind& kind, const Arguments& arguments, MPI_Comm comm);

// Data bytes of `count` elements.
uint64_t bytes_of(int64_t count, MPI_Datatype type);

}  // namespace offpath::mpi::recording
