// SPDX-License-Identifier: BSD-3-Clause
// What a layout must be before anybody uses it.
#pragma once

#include "base/result.hpp"
#include "graph/graph.hpp"

#include <cstdint>

namespace offpath::ops {

// Its size is the sum of its ranges and not 0, else OFFPATH_ERR_ARGUMENT.
base::Status check_layout(const graph::Layout& layout);

}  // namespace offpath::ops
