// SPDX-License-Identifier: BSD-3-Clause
// From a derived datatype to the ranges of memory that its element covers, by taking it apart as MPI's own inquiry
// functions allow (MPI_Type_get_envelope and MPI_Type_get_contents).
#pragma once

#include "mpi/types/datatype.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <optional>
#include <vector>

namespace offpath::mpi {

using Ranges = std::vector<offpath_range_t>;
inline constexpr size_t kMaxRanges = 1 << 20;

// Of one element, in type map order, neighbours joined. Nothing: more than kMaxRanges, or a constructor that is not
// taken apart (Fortran's old ones).
std::optional<Ranges> flatten(MPI_Datatype type);

// The predefined type of which all of the type consists; nullptr: of several, or it cannot be told.
TypeRef basic_type(MPI_Datatype type);

}  // namespace offpath::mpi
