// SPDX-License-Identifier: BSD-3-Clause
// What stands behind a generalized request of ours, as far as the waiting functions care.
//
// Two owners: who works on it until it is finished, and the MPI request until its free callback. The last one deletes.
#pragma once

#include <mpi.h>

#include <atomic>

namespace offpath::mpi {

struct Requested {
  Requested() = default;
  Requested(const Requested&) = delete;
  Requested& operator=(const Requested&) = delete;
  virtual ~Requested() = default;

  // Calls the error handler of what it was issued on and returns `code`. Not Inside.
  virtual int raise(int code) const = 0;

  MPI_Request request = MPI_REQUEST_NULL;  // the application's handle, or what stands for it
  std::atomic<bool> natively{false};       // it has ended at the service: only native progress is left
  std::atomic<bool> finished{false};
  int error = MPI_SUCCESS;  // valid once finished
  std::atomic<int> owners{2};
};

// One that belongs to no lane: the offloader asks it in every round, under its lock.
struct Loose : Requested {
  // Moves it on without waiting. True: it has ended, with `error`.
  virtual bool advance() = 0;
};

}  // namespace offpath::mpi
