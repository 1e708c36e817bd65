// SPDX-License-Identifier: BSD-3-Clause
// How fast the MPI library moves data between the nodes of the job: what rows of the policy that come from measurement
// depend on.
#pragma once

#include "attach/nodes.hpp"

#include <mpi.h>

namespace offpath::mpi {

// Bytes a nanosecond, the same on all ranks: of the fastest of the nodes, each of which sends to the next one at once. 0: not
// known. Takes what 1 MiB takes. Collective over `comm`, whose ranks are those of `nodes`. Inside.
double measure_network(const attach::Nodes& nodes, MPI_Comm comm);

}  // namespace offpath::mpi
