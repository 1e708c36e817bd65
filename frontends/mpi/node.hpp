// SPDX-License-Identifier: BSD-3-Clause
// What the operating system says about the node of this process.
#pragma once

#include "placement.hpp"

#include <array>
#include <cstdint>

namespace offpath::mpi {

// The host name, cut to fit.
std::array<char, 64> host_name();
// Equal for processes that one service can serve: same kernel, same host name, same network namespace.
uint64_t node_key();
// The cores this process is bound to.
CoreSet bound_cores();
// The cores that the job may use here: those of this process and of the launcher's daemon that started it, which is not
// bound to a rank's core. Never more, other jobs may own the rest of the machine.
CoreSet allowed_cores();

}  // namespace offpath::mpi
