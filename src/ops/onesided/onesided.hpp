// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations: from what an origin asked for to a request and the graphs of both sides. Pure.
//
//   short (data of at most kInlineBytes each way)   everything is in the request and in its answer
//   long put           the origin exports its data, the target pulls it into the window
//   long get           the target exports the window, the origin pulls it
//   long accumulate    in pieces: the origin exports its data, the target pulls each piece into scratch and reduces it
//                      onto the window
//   long get_accumulate   the same, and before that the target copies the window's piece to scratch and exports it;
//   with
//                      NO_OP, as get
//
// Body of a request, little endian: see body.cpp. Everything in it is checked by decode() and by the target
// (target.hpp).
#pragma once

#include "base/result.hpp"
#include "graph/request.hpp"

#include <offpath/offpath.h>

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::ops::onesided {

inline constexpr uint64_t kInlineBytes = 1 << 10;  // of data; with a layout and head it fits graph::kMaxRequestBytes
inline constexpr uint32_t kMaxRanges = OFFPATH_REMOTE_RANGES_MAX;

// What the target learns.
struct Wanted {
  uint64_t window = 0;
  offpath_remote_kind_t kind = OFFPATH_PUT;
  kernels::Reduction reduction;  // accumulates; of a compare and swap the element only
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool contiguous = true;
  graph::Layout layout;       // unless contiguous
  std::vector<uint8_t> data;  // short ones that send, else empty: data_bytes()
};

// As offpath_remote_t, after translation.
struct Remote {
  Wanted wanted;
  uint32_t target = 0;
  graph::Place send;                   // where the data lies, unless it is in wanted.data
  graph::Place result;                 // where fetched data goes
  std::vector<graph::Layout> layouts;  // of send and result
};

bool locks(offpath_remote_kind_t kind);        // locks and unlocks
bool accumulates(offpath_remote_kind_t kind);  // ACCUMULATE to COMPARE_AND_SWAP
bool fetches(offpath_remote_kind_t kind);      // into result
bool sends(const Wanted& wanted);              // from send; not with NO_OP
uint64_t data_bytes(const Wanted& wanted);     // of send: 0 if it does not
bool is_short(const Wanted& wanted);

// Whether what the target learns makes sense, its data aside. OFFPATH_ERR_ARGUMENT and why.
base::Status check(const Wanted& wanted);
// Whether the arguments make sense for a team of that size. OFFPATH_ERR_ARGUMENT and why.
base::Status check(const Remote& remote, uint32_t team_size);

// How long accumulates are cut, equal on both sides; the target's scratch is some pieces, whatever the length. The
// defaults are for use; tests make everything small.
struct Tuning {
  uint64_t piece_bytes = uint64_t{256} << 10;  // a multiple of 64
  uint64_t pieces_max = 4096;                  // of one operation: longer ones get longer pieces
  uint32_t under_way = 4;                      // pieces at a time
};

// Precondition: check() passed. What a short one sends is wanted.data or, where that is empty, read by the engine.
graph::Request make_request(Remote remote, const Tuning& tuning = {});
// The target's graph of a long one of member `origin`. `address`: of the first element in the
// target's memory; the place is allowed (target.hpp).
graph::Graph expand_target(const Wanted& wanted, uint32_t origin, uint64_t address, const Tuning& tuning = {});

std::vector<uint8_t> encode(const Wanted& wanted);
// Errors: OFFPATH_ERR_ARGUMENT (short, long, unknown kind, operator not on that element, layout that is none, ...).
base::Result<Wanted> decode(std::span<const uint8_t> body);

}  // namespace offpath::ops::onesided
