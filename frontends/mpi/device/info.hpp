// SPDX-License-Identifier: BSD-3-Clause
// Info objects of regions.
#pragma once

#include "mpi/regions/names.hpp"

namespace offpath::regions {

// What `info` says of REMOTE_DEST_HETERO: "0" and "1" count, as does its absence.
Crossing crossing_of(MPI_Info info);

}  // namespace offpath::regions
