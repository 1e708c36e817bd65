// SPDX-License-Identifier: BSD-3-Clause
// What became of an offloaded operation, in the language of MPI: an error class of ours, with a text per failure.
#pragma once

#include "mpi/lanes/posted_call.hpp"

#include <mpi.h>

#include <optional>

namespace offpath::mpi {

enum class Failure { service_lost, peer_lost, no_agreement, process_lost, revoked };

class Errors {
 public:
  // After native MPI_Init. Returns false if the native library has no room for another error class.
  bool create();
  // What the library says of a communicator by an error of its own, if it is one of these two: a process is lost, or it is revoked.
  static std::optional<Failure> told_by(int code);
  // The code for a failure of no operation.
  int code_of(Failure failure) const;
  // A code of our class whose text names the operation; of those two the library's, which programs compare with. Codes are few: after
  // the first ones a general text is used.
  int lost(Failure failure, const char* collective, uint64_t sequence, const char* communicator);
  // A code whose text says that `call` has failed with `code`; `code` itself where there is no room for another. For
  // handlers that end the program: one code for each time.
  int naming(const char* call, int code) const;
  // The code for any other failing status of the C API.
  int code_for(offpath_status_t status) const;

 private:
  static constexpr int kMaxCodes = 64;
  int class_ = MPI_ERR_OTHER;
  int general_ = MPI_ERR_OTHER;
  int codes_ = 0;
};

// Calls the error handler of `comm` and returns `code`. Not Inside: the handler is the application's.
int raise_error(MPI_Comm comm, int code);

}  // namespace offpath::mpi
