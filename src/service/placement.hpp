// SPDX-License-Identifier: BSD-3-Clause
// Where the service's threads run.
#pragma once

#include "base/result.hpp"

#include <string>

namespace offpath::service {

// How many cores such a list names; 0 for what is none.
uint32_t count_cores(const std::string& cores);

// Binds the calling thread to operating-system cores given as a list ("2,3" or "4-7"); an empty list changes nothing.
base::Status bind_this_thread(const std::string& cores);

// The calling thread runs often and briefly: where it shares a core with a computing rank it gets its turn when it
// wakes up, not when the other's slice (some milliseconds) is over. Its share of the core stays the same. Needs no
// right; before Linux 6.12 it changes nothing.
void ask_for_short_slices();

}  // namespace offpath::service
