// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/job.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/native.hpp"

#include <exception>

namespace offpath::mpi::handlers {
namespace {

int started(int code) {
  if (code != MPI_SUCCESS) return code;
  try {
    job.start();
  } catch (const std::exception&) {
    say(job.settings(), LogLevel::error, "out of memory in MPI_Init");
  }
  return code;
}

}  // namespace

int Init(int* argc, char*** argv) { return started(native.Init(argc, argv)); }

int Init_thread(int* argc, char*** argv, int required, int* provided) {
  return started(native.Init_thread(argc, argv, required, provided));
}

int Finalize() {
  try {
    job.stop();
  } catch (const std::exception&) {
    say(job.settings(), LogLevel::error, "out of memory in MPI_Finalize");
  }
  return native.Finalize();
}

}  // namespace offpath::mpi::handlers
