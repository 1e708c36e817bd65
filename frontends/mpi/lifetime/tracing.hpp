// SPDX-License-Identifier: BSD-3-Clause
// With OFFPATH_TRACE the recorder (recording/) lies over the handlers (docs/design/0011-telemetry.md).
#pragma once

#include "mpi/functions/backend.h"

namespace offpath::mpi::tracing {

// The environment asks for a trace.
bool wanted();

// Puts the recorder over the back end's handlers if it is wanted.
void install(offpath_backend_t* backend);

}  // namespace offpath::mpi::tracing
