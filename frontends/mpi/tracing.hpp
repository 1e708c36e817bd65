// SPDX-License-Identifier: BSD-3-Clause
// Telemetry of single operations: with OFFPATH_TRACE the recorder (recording/) lies over the handlers, and is told what
// only they know (docs/design/0011-telemetry.md). Without it nothing here is called.
#pragma once

#include "operation.hpp"

namespace offpath::mpi::tracing {

// Puts the recorder over the table's handlers if the environment asks for a trace.
void install(void** handlers);

// The operation has ended at the service, with that MPI error code; before its op is freed.
void record_service(const Operation& operation, int error);

}  // namespace offpath::mpi::tracing
