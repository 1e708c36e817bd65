// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "job.hpp"
#include "memory.hpp"

namespace offpath::testing {

// Two processes, whose buffers are moved.
struct MovingJob : Job {
  explicit MovingJob(uint32_t nodes = 1, const char* uses = "1") : Job(2, nodes) { set("OFFPATH_MAPPED", uses); }
};

inline uint64_t moved(offpath_session_t* session) { return counters_of(session).moved_count; }

}  // namespace offpath::testing
