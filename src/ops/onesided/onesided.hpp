// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations: from what an origin asked for to a request and the graphs of both sides. Pure.
//
//   short (data of at most remote::kInlineBytes each way)   everything is in the request and in its answer
//   long put           the origin exports its data, the target pulls it into the window
//   put with signal    the same, and the signal as a second block that the target pulls when it has the data
//   long get           the target exports the window, the origin pulls it
//   long accumulate    in pieces: the origin exports its data, the target pulls each piece into scratch and reduces it
//                      onto the window
//   long get_accumulate   the same, and before that the target copies the window's piece to scratch and exports it;
//                      with NO_OP, as get
#pragma once

#include "graph/request.hpp"
#include "remote/record.hpp"

namespace offpath::ops::onesided {

using remote::accumulates, remote::fetches, remote::locks, remote::signals, remote::Wanted;
static_assert(remote::kMaxBodyBytes <= graph::kMaxRequestBytes);

// A one-sided operation at its origin.
struct Remote : remote::Origin {
  Wanted wanted;          // what its body says
  bool has_data = false;  // the body ends with the data
};

// From the first bytes of `record`, as the client wrote them: about that window, for a team of that size.
// OFFPATH_ERR_ARGUMENT and why.
base::Result<Remote> read(std::span<const uint8_t> record, uint64_t window, uint32_t team_size);
// Whether all but `wanted` makes sense.
base::Status check(const Remote& remote, uint32_t team_size);

// How long accumulates are cut, equal on both sides; the target's scratch is some pieces, whatever the length. The
// defaults are for use; tests make everything small.
struct Tuning {
  uint64_t piece_bytes = uint64_t{256} << 10;  // a multiple of 64
  uint64_t pieces_max = 4096;                  // of one operation: longer ones get longer pieces
  uint32_t under_way = 4;                      // pieces at a time
};

// Precondition: check() passed. What a short one sends and the body has not, the engine reads.
graph::Request make_request(Remote remote, const Tuning& tuning = {});
// The target's graph of a long one of member `origin`. `address`: of the first element in the
// target's memory; the place is allowed (target.hpp).
graph::Graph expand_target(const Wanted& wanted, uint32_t origin, uint64_t address, const Tuning& tuning = {});

}  // namespace offpath::ops::onesided
