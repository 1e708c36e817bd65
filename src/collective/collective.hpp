// SPDX-License-Identifier: BSD-3-Clause
// Collective: what one member asks for. The one description of it: the client makes it from the C API's and writes its
// bytes into the segment, the service reads them, expansions (ops/) make a graph from it. Pure.
//
// Client and service both look at all of it, with check(): the one to tell its caller, the other because the client may
// be broken or hostile.
#pragma once

#include "base/result.hpp"
#include "kernels/reduce.hpp"
#include "memory/layout.hpp"

#include <offpath/offpath.h>

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::collective {

using memory::Block;

inline constexpr uint32_t kReservedTag = UINT32_MAX;  // of no block: the services need it

// Who copies what a member sends to itself (exchange and allgather).
enum class OwnBlocks : uint8_t { by_service, by_client };

// See offpath_collective_t for what each kind wants.
struct Collective {
  offpath_collective_kind_t kind = OFFPATH_EXCHANGE;
  offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT;
  uint32_t root = 0;
  kernels::Reduction reduction;
  std::vector<Block> send, recv;
  std::vector<uint64_t> counts_bytes;
  std::vector<memory::Layout> layouts;
  OwnBlocks own_blocks = OwnBlocks::by_service;  // stands in the slot, not in the record
};

// The kind is one of offpath.h.
const char* name_of(offpath_collective_kind_t kind);

// Whether it makes sense for that member of a team of that size; linear in the ranges, and in blocks that are in the
// order of peers and tags. OFFPATH_ERR_ARGUMENT and why.
base::Status check(const Collective& collective, uint32_t rank, uint32_t size);

// Its bytes as they stand in a segment (record.cpp), in a vector with room for so many more.
std::vector<uint8_t> encode(const Collective& collective, size_t room_behind = 0);
// The first bytes of `record`, each read once: who owns them may change them meanwhile. Errors: OFFPATH_ERR_ARGUMENT
// (cut short, values that no enumeration has, layouts or ranges that are not there). Whether it makes sense says check().
base::Result<Collective> decode(std::span<const uint8_t> record);

}  // namespace offpath::collective
