// SPDX-License-Identifier: BSD-3-Clause
// MPI's predefined datatypes: their memory, and as what the service reduces them.
#pragma once

#include "mpi/types/datatype.hpp"

namespace offpath::mpi {

// nullptr: not predefined by name, or one that this library does not have. Never asks the native library after the
// first call: this is on the way of every operation. After MPI_Init, Inside.
TypeRef find_predefined(MPI_Datatype type);

// What kind of number a type holds; says with its size how it is represented, and which operators are done on it: those
// that MPI allows (MPI 4.0, section 6.9.2), and what else this library does with a meaning.
enum class Nature : uint8_t {
  opaque,
  packed,
  bytes,
  integer,
  natural,
  fortran_integer,
  logical,
  real,
  fortran_real,
  complex,
  pair
};

// Sets element and operators. `explicit_element`: where the size does not tell (long double is not the Fortran type of
// 16 bytes).
void set_reduction(DataType* type, Nature nature, offpath_element_t explicit_element = OFFPATH_ELEMENT_NONE);

}  // namespace offpath::mpi
