// SPDX-License-Identifier: BSD-3-Clause
// The back end that the doorway opens instead of the offloading one when a profile is asked for: every handler calls
// the native function and records what was asked and how long it took. What has no handler here is native.
#include "recording/handlers.hpp"

#include <cstdlib>

namespace offpath::mpi::recording {
namespace {

void begin() {
  const char* prefix = getenv("OFFPATH_PROFILE");
  if (prefix == nullptr || *prefix == '\0') return;
  guarded([&] { log.start(prefix); });
}

int Init(int* argc, char*** argv) {
  const int code = native.Init(argc, argv);
  if (code == MPI_SUCCESS) begin();
  return code;
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = native.Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) begin();
  return code;
}

int Finalize() {
  log.stop();
  return native.Finalize();
}

int Comm_free(MPI_Comm* comm) {
  if (!passes()) guarded([&] { log.forget_communicator(*comm); });
  return native.Comm_free(comm);
}

int Comm_disconnect(MPI_Comm* comm) {
  if (!passes()) guarded([&] { log.forget_communicator(*comm); });
  return native.Comm_disconnect(comm);
}

}  // namespace
}  // namespace offpath::mpi::recording

extern "C" __attribute__((visibility("default"))) int offpath_mpi_backend_open(offpath_backend_t* backend) {
  using namespace offpath::mpi;
  if (backend->struct_bytes != sizeof(*backend) || backend->function_count != OFFPATH_FUNCTION_COUNT) return -1;
  if (!native.load(backend->mpi)) return -1;
  recording::set_collectives(backend->handlers);
  recording::set_waiting(backend->handlers);
  recording::set_remote(backend->handlers);
#define OFFPATH_SET(name) backend->handlers[OFFPATH_FUNCTION_##name] = reinterpret_cast<void*>(&recording::name)
  OFFPATH_SET(Init);
  OFFPATH_SET(Init_thread);
  OFFPATH_SET(Finalize);
  OFFPATH_SET(Comm_free);
  OFFPATH_SET(Comm_disconnect);
  return 0;
}
