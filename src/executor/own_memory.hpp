// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/result.hpp"

#include <cstdint>

namespace offpath::executor {

// Copies between any two addresses of this process. OFFPATH_ERR_MEMORY_FAULT where one of them is no memory (or may not
// be written); some bytes may then have been copied. Never faults.
base::Status copy_checked(uint64_t to, uint64_t from, uint64_t bytes);

}  // namespace offpath::executor
