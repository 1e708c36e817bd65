// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/native_task.hpp"

#include "mpi/native/handlers.hpp"

namespace offpath::mpi::regions {

bool NativeTask::advance() {
  int done = 0;
  MPI_Status status{};
  // The request may be one of ours: a collective that is offloaded.
  const int code = handlers::Test(&request_, &done, &status);
  if (code == MPI_SUCCESS && done == 0) return false;
  if (receives()) {
    int bytes = 0;
    native.Get_count(&status, MPI_BYTE, &bytes);
    upcall_.result.source = status.MPI_SOURCE;
    upcall_.result.tag = status.MPI_TAG;
    upcall_.result.bytes = bytes < 0 ? 0 : static_cast<uint64_t>(bytes);
  }
  upcall_.answer(code);
  return true;
}

void NativeTask::lose(uint64_t channel) {
  // Others end when their peers do their part.
  if (upcall_.channel() == channel && receives()) native.Cancel(&request_);
}

void NativeTask::give_up() {
  if (receives()) native.Cancel(&request_);
  native.Request_free(&request_);
  upcall_.answer(MPI_ERR_OTHER);
}

}  // namespace offpath::mpi::regions
