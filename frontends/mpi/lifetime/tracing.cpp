// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lifetime/tracing.hpp"

#include "attach/statistics.hpp"
#include "base/node.hpp"
#include "mpi/job/job.hpp"
#include "mpi/recording/layer.hpp"

#include <cstdlib>

namespace offpath::mpi::tracing {
namespace {

// The service may be asked for times from here on.
std::string open() {
  attach::JsonObject opening;
  opening.text("reason", job.active() ? "" : job.reason());
  opening.text("clock", base::boot_id());
  opening.number("service_pid", attach::counters_of(job.session()).service_pid);
  if (job.active()) offpath_session_time_operations(job.session(), 1);
  const std::string members = opening.json();
  return ", " + members.substr(1, members.size() - 2);
}

constexpr recording::Purpose kTrace{"OFFPATH_TRACE",        "offpath-trace", false,
                                    "OFFPATH_TRACE_SAMPLE", &open,           [] { return job.all().traced; }};

}  // namespace

bool wanted() {
  const char* prefix = secure_getenv(kTrace.variable);
  return prefix != nullptr && *prefix != '\0';
}

void install(offpath_backend_t* backend) {
  if (!wanted()) return;
  recording::install(backend->handlers, kTrace);
  backend->mark_region = &recording::mark_region;
}

}  // namespace offpath::mpi::tracing
