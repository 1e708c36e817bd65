// SPDX-License-Identifier: BSD-3-Clause
// From what a client wrote into its session segment to what ops/ expands. Pure.
#pragma once

#include "ops/collectives/collective.hpp"
#include "ops/onesided/onesided.hpp"
#include "ops/programs/program.hpp"
#include "session/segment_view.hpp"

namespace offpath::service {

// Errors: OFFPATH_ERR_ARGUMENT for values that are no enumerators. Whether the values make sense together is up to
// ops::check().
base::Result<ops::Collective> translate(const session::CollectiveArguments& arguments, bool copy_own_blocks);

// Likewise, for ops::onesided::check(). `window`: the id of the one it must be about.
base::Result<ops::onesided::Remote> translate(session::RemoteArguments arguments, uint64_t window);

// Likewise, for ops::check().
base::Result<ops::Program> translate(session::ProgramArguments arguments);

}  // namespace offpath::service
