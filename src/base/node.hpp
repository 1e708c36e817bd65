// SPDX-License-Identifier: BSD-3-Clause
// What makes a node: what one service can serve.
#pragma once

#include <cstdint>
#include <string>

namespace offpath::base {

// Of the running kernel, whose CLOCK_MONOTONIC all its processes read. Empty: it does not say.
std::string boot_id();

// Equal for processes with the same kernel, host name and network. Never by what somebody may set for many nodes at
// once, as an environment variable. Namespaces of files or processes do not count: a container for each rank has those.
uint64_t node_key();

}  // namespace offpath::base
