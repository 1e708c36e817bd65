// SPDX-License-Identifier: BSD-3-Clause
// Telemetry of single operations: with OFFPATH_TRACE the recorder (recording/) lies over the handlers, and is told what
// only they know (docs/design/0011-telemetry.md). Without it nothing here is called.
#pragma once

#include <offpath/offpath.h>

#include <cstdint>
#include <span>

namespace offpath::mpi::tracing {

// The environment asks for a trace.
bool wanted();

// Puts the recorder over the table's handlers if it is wanted.
void install(void** handlers);

// What is recorded under that number has ended at the service as these operations, at least one, with that MPI error
// code; before they are freed.
void record_service(uint64_t recorded, std::span<offpath_op_t* const> ops, int error);

}  // namespace offpath::mpi::tracing
