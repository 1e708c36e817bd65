// SPDX-License-Identifier: BSD-3-Clause
// A one-sided operation at its origin, and how it stands in a session segment. Pure.
#pragma once

#include "remote/wanted.hpp"

namespace offpath::remote {

// This, then LayoutRecord[layouts_count], Range[ranges_count] of all layouts one after the other, and wanted_bytes bytes:
// what the target gets (wanted.hpp), with data of at most OFFPATH_REMOTE_INLINE_BYTES or what `send` names.
struct RemoteRecord {
  uint32_t target;
  uint32_t layouts_count;
  uint32_t ranges_count;
  uint32_t wanted_bytes;
  memory::Block send;
  memory::Block result;
};
static_assert(sizeof(RemoteRecord) == 80);

struct Origin {
  uint32_t target = 0;
  memory::Block send;    // where the data lies that is not in the body
  memory::Block result;  // where fetched data goes; or where the signal lies
  std::vector<memory::Layout> layouts;
  std::vector<uint8_t> body;
};

// Replaces what `out` holds.
void encode(const Origin& origin, std::vector<uint8_t>& out);
// The same with the body that `wanted` and its data make, written where it belongs.
void encode(const Origin& origin, const Wanted& wanted, std::span<const uint8_t> data, std::vector<uint8_t>& out);
// As of a Collective. The body is any bytes.
base::Result<Origin> decode_origin(std::span<const uint8_t> record);

}  // namespace offpath::remote
