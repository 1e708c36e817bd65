// SPDX-License-Identifier: BSD-3-Clause
#include "recording/layer.hpp"

#include "backend.h"
#include "recording/handlers.hpp"

#include <cstdlib>

namespace offpath::mpi::recording {

Native next;

namespace {

const Purpose* purpose = nullptr;

void begin() {
  const char* prefix = getenv(purpose->variable);
  if (prefix == nullptr || *prefix == '\0') return;
  guarded([&] { log.start(prefix, *purpose); });
}

int Init(int* argc, char*** argv) {
  const int code = next.Init(argc, argv);
  if (code == MPI_SUCCESS) begin();
  return code;
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = next.Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) begin();
  return code;
}

// What is still under way ends in it, and is recorded.
int Finalize() {
  const uint64_t end_ns = log.since_start_ns();
  const int code = next.Finalize();
  log.stop(end_ns);
  return code;
}

int Comm_free(MPI_Comm* comm) {
  if (!passes()) guarded([&] { log.forget_communicator(*comm); });
  return next.Comm_free(comm);
}

int Comm_disconnect(MPI_Comm* comm) {
  if (!passes()) guarded([&] { log.forget_communicator(*comm); });
  return next.Comm_disconnect(comm);
}

void set_next(auto& function, void* handler) {
  if (handler != nullptr) function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(handler);
}

}  // namespace

void install(void** handlers, const Purpose& what_for) {
  purpose = &what_for;
  next = native;
#define OFFPATH_MPI_FUNCTION(name) set_next(next.name, handlers[OFFPATH_FUNCTION_##name]);
#include "functions.def"
  set_collectives(handlers);
  set_waiting(handlers);
  set_remote(handlers);
#define OFFPATH_SET(name) handlers[OFFPATH_FUNCTION_##name] = reinterpret_cast<void*>(&name)
  OFFPATH_SET(Init);
  OFFPATH_SET(Init_thread);
  OFFPATH_SET(Finalize);
  OFFPATH_SET(Comm_free);
  OFFPATH_SET(Comm_disconnect);
}

}  // namespace offpath::mpi::recording
