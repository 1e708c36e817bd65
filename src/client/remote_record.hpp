// SPDX-License-Identifier: BSD-3-Clause
// From an offpath_remote_t to what goes into the session segment. Pure. Linear in the ranges.
#pragma once

#include "remote/wanted.hpp"

#include <cstdint>
#include <vector>

namespace offpath::client {

// What a caller can get wrong: OFFPATH_OK, OFFPATH_ERR_ARGUMENT, or OFFPATH_ERR_NO_MEMORY when the description is
// longer than any segment. `wanted`: what the target is to learn, its window aside.
offpath_status_t check_remote(const offpath_remote_t& remote, uint32_t team_size, remote::Wanted& wanted);

// The RemoteRecord with all that follows it. Precondition: check_remote() passed.
void build_record(const offpath_remote_t& remote, const remote::Wanted& wanted, std::vector<uint8_t>& out);

}  // namespace offpath::client
