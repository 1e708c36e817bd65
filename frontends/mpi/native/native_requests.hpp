// SPDX-License-Identifier: BSD-3-Clause
// The native requests of one operation, which has ended natively when all of them have.
//
// Threads: under the offloader's lock.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace offpath::mpi {

class NativeRequests {
 public:
  // Room for so many; start() takes no memory then. May throw bad_alloc.
  void reserve(size_t count) { open_.reserve(count); }
  // `call`: a nonblocking native call that is given where its request goes. If it fails the others go on.
  template <typename Call>
  void start(Call&& call) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = call(&request);
    if (code == MPI_SUCCESS)
      open_.push_back(request);
    else
      keep_error(code);
  }
  // Moves native communication on. True: none is under way any more.
  bool done();
  // MPI error code of the first that failed.
  int error() const { return error_; }

 private:
  void keep_error(int code) {
    if (error_ == MPI_SUCCESS) error_ = code;
  }

  std::vector<MPI_Request> open_;
  int error_ = MPI_SUCCESS;
};

}  // namespace offpath::mpi
