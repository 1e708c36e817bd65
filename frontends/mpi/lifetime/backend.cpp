// SPDX-License-Identifier: BSD-3-Clause
// The back end's only exported function: hands the table of handlers to the doorway.
#include "attach/resting.hpp"
#include "attach/statistics.hpp"
#include "mpi/functions/backend.h"
#include "mpi/lifetime/seen.hpp"
#include "mpi/lifetime/tracing.hpp"

#include "mpi/job/job.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/stand_ins.hpp"
#include "mpi/native/waits.hpp"
#include "mpi/proxy/layer.hpp"
#include "mpi/proxy/proxy.hpp"

namespace {

int job_token(uint8_t* token) { return offpath::mpi::job.copy_token(token) ? 1 : 0; }

uint64_t service_cpu_ns() {
  using offpath::mpi::job;
  return job.active() ? offpath::attach::counters_of(job.session()).service_cpu_ns : 0;
}

int rest() { return offpath::attach::resting.rest() ? 1 : 0; }

void serve_upcall(offpath_upcall_request_t* request) { offpath::mpi::regions::proxy.serve(request); }
void upcall_channel_lost(uint64_t channel) { offpath::mpi::regions::proxy.lose(channel); }

}  // namespace

extern "C" __attribute__((visibility("default"))) int offpath_mpi_backend_open(offpath_backend_t* backend) {
  if (backend->struct_bytes != sizeof(*backend) || backend->function_count != OFFPATH_FUNCTION_COUNT) return -1;
  if (!offpath::mpi::native.load(backend->mpi)) return -1;
  offpath::mpi::set_missing(backend);
  if (backend->only_missing != 0) return 0;
  // What was built natively before we came stays native.
  int initialized = 0;
  if (offpath::mpi::native.Initialized(&initialized) != MPI_SUCCESS) return -1;
  if (initialized != 0) return OFFPATH_BACKEND_TOO_LATE;
#define OFFPATH_MPI_FUNCTION(name, waits, seen) \
  backend->handlers[OFFPATH_FUNCTION_##name] = reinterpret_cast<void*>(+offpath::mpi::handlers::name);
#define OFFPATH_MPI_OBSERVED(name, waits, seen)
#define OFFPATH_MPI_PLAIN(name, waits, seen)
#include <offpath/words/mpi_functions.def>
  offpath::mpi::count_calls(backend->handlers);
  backend->service_cpu_ns = &service_cpu_ns;
  backend->job_token = &job_token;
  backend->rest = &rest;
  if (offpath::mpi::regions::have_targets()) {
    offpath::mpi::regions::install(backend->handlers);
    backend->serve_upcall = &serve_upcall;
    backend->upcall_channel_lost = &upcall_channel_lost;
  }
  using offpath::mpi::waits::Timed;
  offpath::mpi::waits::install(backend, offpath::mpi::tracing::wanted() ? Timed::always : Timed::when_wanted);
  offpath::mpi::tracing::install(backend);
  return 0;
}
