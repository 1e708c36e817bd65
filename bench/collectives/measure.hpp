// SPDX-License-Identifier: BSD-3-Clause
// The three times of one size, repeated in turns.
#pragma once

#include <cstdint>

#include "options.hpp"
#include "times.hpp"

namespace bench {

struct Row : Times {
  std::int64_t bytes = 0, work_iterations = 0;
  std::int64_t host_cpu_ns = 0;     // for each overlapped operation, all ranks together
  std::int64_t compute_cpu_ns = 0;  // the same, of the work alone
  double work_share = 1;            // of its core, that the work alone got: of the rank that got least
  std::int64_t agent_cpu_ns = 0;    // the same, all agents of services on other machines together
  std::int64_t service_cpu_ns = 0;  // the same, all services together
  bool verified = true;             // true too when nothing was checked
};

// Collective; the row is the same on all ranks. index says which of options.sizes.
Row measure(const Options& options, std::size_t index);

}  // namespace bench
