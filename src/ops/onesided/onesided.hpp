// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations: from what an origin asked for to a request and the graphs of both sides. Pure.
//
//   short (data of at most kInlineBytes each way)   everything is in the request and in its answer
//   long put, accumulate      the origin exports its data; the target pulls it into the window, or into scratch and
//                             reduces it onto the window
//   long get                  the target exports the window; the origin pulls it
//   long get_accumulate       both: the target copies the window to scratch, exports that, then reduces
//
// Body of a request, little endian: see body.cpp. Everything in it is checked by decode() and by the target (target.hpp).
#pragma once

#include "base/result.hpp"
#include "engine/engine.hpp"

#include <offpath/offpath.h>

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::ops::onesided {

inline constexpr uint64_t kInlineBytes = 1 << 10;  // of data; with a layout and head it fits engine::kMaxRequestBytes
inline constexpr uint32_t kMaxRanges = OFFPATH_REMOTE_RANGES_MAX;

// What the target learns.
struct Wanted {
  uint64_t window = 0;
  offpath_remote_kind_t kind = OFFPATH_PUT;
  kernels::Reduction reduction;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool contiguous = true;
  engine::Layout layout;           // unless contiguous
  std::vector<uint8_t> data;       // short put, accumulate, compare and swap (new value, then the one compared with)
};

// As offpath_remote_t, after translation.
struct Remote {
  Wanted wanted;
  uint32_t target = 0;
  engine::Place send;    // long: where the data lies; short ones are in wanted.data
  engine::Place result;  // where fetched data goes
  std::vector<engine::Layout> layouts;  // of send and result
};

bool fetches(offpath_remote_kind_t kind);
bool sends(offpath_remote_kind_t kind);
bool accumulates(offpath_remote_kind_t kind);  // ACCUMULATE to COMPARE_AND_SWAP
bool is_short(const Wanted& wanted);

// Whether the arguments make sense for a team of that size. OFFPATH_ERR_ARGUMENT and why.
base::Status check(const Remote& remote, uint32_t team_size);

// Precondition: check() passed; wanted.data is filled if is_short() and it sends.
engine::Request make_request(Remote remote);
// The target's graph of a long one. `base`: address that offset counts from. The place is allowed (target.hpp).
engine::Graph expand_target(const Wanted& wanted, uint32_t origin, uint64_t base);

std::vector<uint8_t> encode(const Wanted& wanted);
// Errors: OFFPATH_ERR_ARGUMENT (short, long, unknown kind, operator not on that element, layout that is none, ...).
base::Result<Wanted> decode(std::span<const uint8_t> body);

}  // namespace offpath::ops::onesided
