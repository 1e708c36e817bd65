// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/service_times.hpp"

#include "attach/statistics.hpp"
#include "base/node.hpp"
#include "mpi/job/job.hpp"
#include "mpi/recording/layer.hpp"
#include "mpi/recording/log.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>

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

// Of what is one to the program: from the first beginning to the last end.
offpath_op_times_t together(const offpath_op_times_t& a, const offpath_op_times_t& b) {
  offpath_op_times_t times = a.done_ns < b.done_ns ? b : a;
  times.posted_ns = std::min(a.posted_ns, b.posted_ns);
  times.started_ns = std::min(a.started_ns, b.started_ns);
  const bool only_one = a.first_byte_ns == 0 || b.first_byte_ns == 0;
  times.first_byte_ns = only_one ? a.first_byte_ns + b.first_byte_ns : std::min(a.first_byte_ns, b.first_byte_ns);
  return times;
}

constexpr recording::Purpose kTrace{"OFFPATH_TRACE",        "offpath-trace", false,
                                    "OFFPATH_TRACE_SAMPLE", &open,           [] { return job.all_traced(); }};

}  // namespace

bool wanted() {
  const char* prefix = secure_getenv(kTrace.variable);
  return prefix != nullptr && *prefix != '\0';
}

void install(void** handlers) {
  if (wanted()) recording::install(handlers, kTrace);
}

void record_service(uint64_t recorded, std::span<offpath_op_t* const> ops, int error) {
  std::optional<offpath_op_times_t> times;
  bool known = true;
  for (offpath_op_t* op : ops) {
    offpath_op_times_t its{};
    its.struct_bytes = sizeof(its);
    known = known && offpath_op_times(op, &its) == OFFPATH_OK;
    times = times ? together(*times, its) : its;
  }
  try {
    recording::log.serve(recorded, known ? &*times : nullptr, error);
  } catch (const std::exception&) {
    recording::log.stop();
  }
}

}  // namespace offpath::mpi::tracing
