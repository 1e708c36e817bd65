// SPDX-License-Identifier: BSD-3-Clause
// Hands a described call to its lane.
#pragma once

#include "mpi/lanes/lane.hpp"
#include "mpi/lanes/posted_call.hpp"

#include <memory>

namespace offpath::mpi {

// Starts the call once, as its lane's operation or, if a service was lost, on the shadow communicator with
// `native_arguments`. `open`: which path it takes is still to be decided.
// *request is the application's, or stands for it. MPI error code; no handler was called. May throw bad_alloc; then
// nothing was started. Not Inside.
int submit(Lane& lane, const std::shared_ptr<const Call>& call, const std::optional<Ask>& open,
           const Arguments& native_arguments, MPI_Request* request);

}  // namespace offpath::mpi
