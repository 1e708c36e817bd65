// SPDX-License-Identifier: BSD-3-Clause
// Which blocking collectives are offloaded: OFFPATH_MPI_BLOCKING. Pure.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string_view>

namespace offpath::policy {

// From "alltoall,bcast", "all", "none" or nothing to a set of bits 1 << Collective (of the nonblocking form).
base::Result<uint32_t> parse_blocking(std::string_view text);

}  // namespace offpath::policy
