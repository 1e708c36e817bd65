// SPDX-License-Identifier: BSD-3-Clause
// Persistent collectives for a library that has none (MPICH 3): the doorway exports them with any library, and programs
// that look for them at run time use what they find.
//
// The application holds a persistent request of the library's that is never started: a receive from nobody. Each start
// makes a nonblocking collective, which stands in for it in the functions that take requests. It goes over a
// communicator of its own, as ranks may start theirs in different orders.
#pragma once

#include "mpi/functions/backend.h"
#include "mpi/native/native.hpp"

namespace offpath::mpi {

// Gives what `functions` lacks its stand-in. True: there is any.
bool add_stand_ins(Native* functions);

// Into backend->handlers: what the doorway exports and the library lacks, and the functions that take requests, which have to
// know of stand-ins. The back end that offloads puts its own over the latter (requests/completion.cpp). After native.load().
void set_missing(offpath_backend_t* backend);

}  // namespace offpath::mpi
