// SPDX-License-Identifier: BSD-3-Clause
// What the doorway exports and the loaded library lacks: a program that looks for it at run time finds it. And functions of
// the library that have to know of it.
#pragma once

#include "mpi/functions/backend.h"
#include "mpi/native/native.hpp"

namespace offpath::mpi {

// Into backend->handlers. After native.load().
void set_missing(offpath_backend_t* backend);

}  // namespace offpath::mpi
