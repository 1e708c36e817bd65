// SPDX-License-Identifier: BSD-3-Clause
// The predefined objects of names.def as tables: name in the protocol <-> handle. Compiled against either MPI's header,
// on both sides.
#pragma once

#include "mpi/regions/protocol.hpp"

#include <mpi.h>

#include <array>
#include <cstddef>

namespace offpath::regions {

#define OFFPATH_COMMA ,

struct NamedType {
  MPI_Datatype handle;
  size_t bytes;
};

inline const auto& named_types() {
  static const std::array types{
#define OFFPATH_TYPE(name, type) NamedType{MPI_##name, sizeof(type)},
#include "mpi/regions/names.def"
  };
  return types;
}

inline const auto& named_operators() {
  static const std::array operators{
#define OFFPATH_OPERATOR(name) MPI_##name,
#include "mpi/regions/names.def"
  };
  return operators;
}

// nullptr: no such name.
inline const NamedType* find_type(uint64_t name) {
  const auto& types = named_types();
  return name == 0 || name > types.size() ? nullptr : &types[name - 1];
}

inline const MPI_Op* find_operator(uint64_t name) {
  const auto& operators = named_operators();
  return name == 0 || name > operators.size() ? nullptr : &operators[name - 1];
}

#ifdef OPEN_MPI
inline constexpr Mpi kOwnMpi = Mpi::openmpi;
#elif defined(MPI_ABI_VERSION)
inline constexpr Mpi kOwnMpi = Mpi::standard;
#else
inline constexpr Mpi kOwnMpi = Mpi::mpich;
#endif

}  // namespace offpath::regions
