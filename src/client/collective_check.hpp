// SPDX-License-Identifier: BSD-3-Clause
// What a caller can get wrong in an offpath_collective_t. Pure. Linear in the ranges, and in the blocks of an
// exchange when they are in the order of peers and tags.
#pragma once

#include <offpath/offpath.h>

#include <cstdint>

namespace offpath::client {

// OFFPATH_OK, OFFPATH_ERR_ARGUMENT, or OFFPATH_ERR_NO_MEMORY when the description is longer than any segment: then its
// arrays were not looked at. Whether the operator is defined on the element type is left to the service.
offpath_status_t check_collective(const offpath_collective_t& collective, uint32_t rank, uint32_t size);

// "exchange", "barrier", ...; the kind was checked.
const char* kind_name(offpath_collective_kind_t kind);

}  // namespace offpath::client
