// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/native/native.hpp"

#include <mpi.h>

namespace offpath::mpi {

// While it lives, errors on a communicator come back to us instead of the application's handler.
class ErrorsReturn {
 public:
  explicit ErrorsReturn(MPI_Comm comm) : comm_(comm) {
    native.Comm_get_errhandler(comm_, &saved_);
    native.Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~ErrorsReturn() {
    native.Comm_set_errhandler(comm_, saved_);
    native.Errhandler_free(&saved_);
  }
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler saved_ = MPI_ERRHANDLER_NULL;
};

}  // namespace offpath::mpi
