// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/service_times.hpp"

#include "mpi/recording/log.hpp"

#include <algorithm>
#include <exception>
#include <optional>

namespace offpath::mpi::recording {
namespace {

// Of what is one to the program: from the first beginning to the last end.
offpath_op_times_t together(const offpath_op_times_t& a, const offpath_op_times_t& b) {
  offpath_op_times_t times = a.done_ns < b.done_ns ? b : a;
  times.posted_ns = std::min(a.posted_ns, b.posted_ns);
  times.started_ns = std::min(a.started_ns, b.started_ns);
  const bool only_one = a.first_byte_ns == 0 || b.first_byte_ns == 0;
  times.first_byte_ns = only_one ? a.first_byte_ns + b.first_byte_ns : std::min(a.first_byte_ns, b.first_byte_ns);
  return times;
}

}  // namespace

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
    log.serve(recorded, known ? &*times : nullptr, error);
  } catch (const std::exception&) {
    log.stop();
  }
}

}  // namespace offpath::mpi::recording
