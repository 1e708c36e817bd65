// SPDX-License-Identifier: BSD-3-Clause
// The ranks of this process's job on this node, as its launcher has started them: seen from outside, so also those that
// have not said anything yet.
#pragma once

#include "base/placement.hpp"

#include <sys/types.h>

#include <vector>

namespace offpath::base {

// The cores that a process is bound to. None: there is no such process.
CoreSet affinity_of(pid_t process);

// What has started this process: the nearest ancestor that is no part of its rank (a shell around it is); the parent of
// one that no launcher has started.
pid_t own_launcher();

// The cores that the job may use on this node: those of this process and of its launcher (allowed_cores).
CoreSet own_allowed_cores();

// The cores of each rank here, this process's first. Waits for ranks that the launcher has not started yet, for a second at
// most; one that has not come then counts as one that is not bound.
std::vector<CoreSet> local_rank_masks();

}  // namespace offpath::base
