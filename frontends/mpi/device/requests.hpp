// SPDX-License-Identifier: BSD-3-Clause
// Requests of nonblocking calls in regions.
#pragma once

#include "mpi/device/call.hpp"
#include "mpi/device/handles.hpp"

namespace offpath::regions {

struct Request {
  UpCall upcall;
  bool receives = false;
};

// Posts a call and gives the region its request. An MPI error class.
int start(const Arguments& arguments, bool receives, Buffer input, Buffer output, MPI_Request* request);

// Fills what MPI_Recv and MPI_Wait tell of a message; MPI_STATUS_IGNORE is allowed.
void fill_status(const Result& result, MPI_Status* status);
void fill_empty_status(MPI_Status* status);

}  // namespace offpath::regions
