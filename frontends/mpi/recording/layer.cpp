// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/layer.hpp"

#include "mpi/functions/backend.h"
#include "mpi/recording/handlers.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace offpath::mpi::recording {

Native next;

namespace {

const Purpose* purpose = nullptr;
int (*finalize)() = nullptr;  // the library's own
uint64_t end_ns = 0;          // of the program's part

void begin() {
  const Inside inside;
  const char* prefix = secure_getenv(purpose->variable);
  if (purpose->agreed != nullptr && !purpose->agreed()) return;  // who does not record joins in nothing
  if (prefix != nullptr && *prefix != '\0') log.start(prefix, *purpose);
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
  end_ns = log.since_start_ns();
  return next.Finalize();
}

// What all layers call in the end: the last moment at which ranks can tell each other anything.
int finalize_last() {
  {
    const Inside inside;
    guarded([] { log.stop(end_ns); });
    guarded([] { log.hand_in(); });
  }
  return finalize();
}

int Comm_free(MPI_Comm* comm) {
  if (!passes()) guarded([&] { log.forget_communicator(*comm); });
  return next.Comm_free(comm);
}

int Comm_disconnect(MPI_Comm* comm) {
  if (!passes()) guarded([&] { log.forget_communicator(*comm); });
  return next.Comm_disconnect(comm);
}

}  // namespace

void mark_region(const char* name, int begins) {
  if (name == nullptr || passes()) return;
  const std::string_view known(name, strnlen(name, UserRegions::kMaxNameBytes));
  guarded([&] { log.mark_region(thread_number(), known, begins != 0); });
}

void install(void** handlers, const Purpose& what_for) {
  purpose = &what_for;
  finalize = native.Finalize;
  native.Finalize = &finalize_last;
  next = native.under(handlers);
  set_collectives(handlers);
  set_waiting(handlers);
  set_remote(handlers);
  set_messages(handlers);
#define OFFPATH_SET(name) handlers[OFFPATH_FUNCTION_##name] = reinterpret_cast<void*>(&name)
  OFFPATH_SET(Init);
  OFFPATH_SET(Init_thread);
  OFFPATH_SET(Finalize);
  OFFPATH_SET(Comm_free);
  OFFPATH_SET(Comm_disconnect);
#undef OFFPATH_SET
}

}  // namespace offpath::mpi::recording
