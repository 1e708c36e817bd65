// SPDX-License-Identifier: BSD-3-Clause
#include "tracing.hpp"

#include "attach/statistics.hpp"
#include "job.hpp"
#include "recording/layer.hpp"
#include "recording/log.hpp"

#include <cstdlib>
#include <exception>

namespace offpath::mpi::tracing {
namespace {

// The service may be asked for times from here on.
std::string open() {
  attach::JsonObject opening;
  opening.text("reason", job.active() ? "" : job.reason());
  opening.number("service_pid", attach::counters_of(job.session()).service_pid);
  if (job.active()) offpath_session_time_operations(job.session(), 1);
  const std::string members = opening.json();
  return ", " + members.substr(1, members.size() - 2);
}

constexpr recording::Purpose kTrace{"OFFPATH_TRACE", "offpath-trace", false, "OFFPATH_TRACE_SAMPLE", &open};

}  // namespace

void install(void** handlers) {
  const char* prefix = getenv(kTrace.variable);
  if (prefix != nullptr && *prefix != '\0') recording::install(handlers, kTrace);
}

void record_service(const Operation& operation, int error) {
  offpath_op_times_t times{};
  times.struct_bytes = sizeof(times);
  const bool known = offpath_op_times(operation.op, &times) == OFFPATH_OK;
  try {
    recording::log.serve(operation.recorded, known ? &times : nullptr, error);
  } catch (const std::exception&) {
    recording::log.stop();
  }
}

}  // namespace offpath::mpi::tracing
