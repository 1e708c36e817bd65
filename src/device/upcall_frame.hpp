// SPDX-License-Identifier: BSD-3-Clause
// The body of an upcall frame: code, sizes, spans, arguments. Pure. On a stream the bytes of the inputs follow the
// frame, and those of the outputs follow its reply.
#pragma once

#include "base/result.hpp"
#include "device/upcall.h"

#include <cstdint>
#include <span>
#include <vector>

namespace offpath::device {

inline constexpr uint64_t kMaxUpcallBytes = uint64_t{1} << 30;  // of all spans of one upcall

struct UpcallFrame {
  uint32_t code = 0;
  std::vector<uint8_t> args;
  std::vector<uint64_t> inputs;  // pairs of address (in heap or staging) and bytes
  std::vector<uint64_t> outputs;
};

std::vector<uint8_t> encode(const UpcallFrame& frame);
base::Result<UpcallFrame> decode_upcall(std::span<const uint8_t> body);

}  // namespace offpath::device
