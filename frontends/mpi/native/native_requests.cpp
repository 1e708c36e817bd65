// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/native_requests.hpp"

#include "mpi/native/native.hpp"

namespace offpath::mpi {

bool NativeRequests::done() {
  // All must end, so asking about one at a time is enough, and moves the others on as well.
  while (!open_.empty()) {
    int done = 0;
    const int code = native.Test(&open_.back(), &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS)
      keep_error(code);
    else if (done == 0)
      return false;
    open_.pop_back();
  }
  return true;
}

}  // namespace offpath::mpi
