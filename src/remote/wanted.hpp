// SPDX-License-Identifier: BSD-3-Clause
// Wanted: what a one-sided operation wants of its target. The one description of it: the client writes its bytes into
// the segment, the services hand them on, the target's service reads them. Pure.
//
// Each of the three checks all of it: check() where one was made, decode() where one was received.
#pragma once

#include "base/result.hpp"
#include "kernels/reduce.hpp"
#include "memory/layout.hpp"

#include <offpath/offpath.h>

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::remote {

inline constexpr uint64_t kInlineBytes = 1 << 10;  // of data that goes with a request, or with its answer
inline constexpr uint32_t kMaxRanges = OFFPATH_REMOTE_RANGES_MAX;
inline constexpr uint64_t kSignalBytes = 8;
inline constexpr size_t kHeadBytes = 40, kLayoutBytes = 16, kRangeBytes = 16;
inline constexpr size_t kMaxBodyBytes = kHeadBytes + kLayoutBytes + kMaxRanges * kRangeBytes + kInlineBytes;

struct Wanted {
  uint64_t window = 0;
  offpath_remote_kind_t kind = OFFPATH_PUT;
  kernels::Reduction reduction;  // accumulates; of a compare and swap the element only; else what is_number(), if known
  uint64_t offset = 0;           // of the first element
  uint64_t bytes = 0;
  uint64_t number = 0;  // of what is atomic: ascending among those of its origin at its target
  bool contiguous = true;
  memory::Layout layout;  // unless contiguous
};

// Floating-point numbers or pairs of these: what lossy compression is for.
constexpr bool is_number(offpath_element_t element) {
  return element == OFFPATH_ELEMENT_F32 || element == OFFPATH_ELEMENT_F64 || element == OFFPATH_ELEMENT_C32 ||
         element == OFFPATH_ELEMENT_C64;
}

// The kind is one of offpath.h.
const char* name_of(offpath_remote_kind_t kind);
bool locks(offpath_remote_kind_t kind);        // locks and unlocks
bool signals(offpath_remote_kind_t kind);      // with kSignalBytes behind the data
bool accumulates(offpath_remote_kind_t kind);  // ACCUMULATE to COMPARE_AND_SWAP
bool combines(offpath_remote_kind_t kind);     // with an operator
bool fetches(offpath_remote_kind_t kind);
bool may_send(offpath_remote_kind_t kind);
bool sends(const Wanted& wanted);           // not with NO_OP
uint64_t data_bytes(const Wanted& wanted);  // that it sends
bool is_short(const Wanted& wanted);        // all data goes with the request and its answer

// OFFPATH_ERR_ARGUMENT and why.
base::Status check(const Wanted& wanted);

// Its bytes, little endian, behind what `out` holds, with data of a short one behind them (body.cpp).
void encode(const Wanted& wanted, std::span<const uint8_t> data, std::vector<uint8_t>& out);
size_t encoded_bytes(const Wanted& wanted);  // the data aside

// `data` lies in the body.
struct Decoded {
  Wanted wanted;
  std::span<const uint8_t> data;
};
// Data of short ones: must be there, or may be left to who will put it behind the body.
enum class Data : uint8_t { is_there, may_follow };
// Errors: OFFPATH_ERR_ARGUMENT (short, long, and what check() refuses).
base::Result<Decoded> decode(std::span<const uint8_t> body, Data data = Data::is_there);

}  // namespace offpath::remote
