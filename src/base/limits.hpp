// SPDX-License-Identifier: BSD-3-Clause
// What offpath.h promises about sizes.
#pragma once

#include <cstdint>

namespace offpath::base {

inline constexpr uint64_t kBlockLimitBytes = uint64_t{1} << 46;  // a block is shorter: 64 TiB

}  // namespace offpath::base
