// SPDX-License-Identifier: BSD-3-Clause
// The program's time inside functions that block (words/mpi_functions.def): a layer of handlers that tell when a thread
// begins to wait and when it has waited, and when it polls. Only the outermost call of a thread is told of.
#pragma once

#include "mpi/functions/backend.h"

namespace offpath::mpi::waits {

// A recorder looks for who called it, so it has to lie over this layer, which therefore is there from the start.
enum class Timed { always, when_wanted };

// Over what is in backend->handlers, of which null ones mean the native function.
void install(offpath_backend_t* backend, Timed timed);

}  // namespace offpath::mpi::waits
