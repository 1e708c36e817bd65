// SPDX-License-Identifier: BSD-3-Clause
// What a native function makes for the program. Its code alone does not say whether it has: where the program's own error
// handler was told of a failure and returned, MPICH 5.0 says MPI_SUCCESS, and leaves the program's memory as it was.
#pragma once

#include <mpi.h>

namespace offpath::mpi {

template <typename Handle>
class Made {
 public:
  explicit Made(Handle* place) : place_(place) {}
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  // For the native call.
  Handle* place() { return place_ == nullptr ? nullptr : &handle_; }
  // After it: gives the program what there is. Whether there is anything.
  bool give(int code, Handle null) {
    if (handle_ == Handle{}) return false;  // which no library has
    *place_ = handle_;
    return code == MPI_SUCCESS && handle_ != null;
  }

 private:
  Handle* place_;
  Handle handle_{};
};

}  // namespace offpath::mpi
