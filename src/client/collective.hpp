// SPDX-License-Identifier: BSD-3-Clause
// How every form of a collective is posted. Internal to client/.
#pragma once

#include "client/session.hpp"

#include <memory>

namespace offpath::client {

// As offpath_collective(), of the session's own process. `name`: what offpath_op_describe calls it, static; null: as
// its kind. `staging`: memory that the blocks lie in and the operation owns, may be null.
offpath_status_t post_collective(offpath_team& team, const offpath_collective_t& collective, const char* name,
                                 std::unique_ptr<uint8_t[]> staging, offpath_op** out);

}  // namespace offpath::client
