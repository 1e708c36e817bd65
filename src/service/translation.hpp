// SPDX-License-Identifier: BSD-3-Clause
// From the vector program that a client wrote into its session segment to what ops/ expands. Pure.
#pragma once

#include "ops/programs/program.hpp"
#include "session/segment_view.hpp"

namespace offpath::service {

// Errors: OFFPATH_ERR_ARGUMENT for values that are no enumerators. Whether the values make sense together is up to
// ops::check().
base::Result<ops::Program> translate(session::ProgramArguments arguments);

}  // namespace offpath::service
