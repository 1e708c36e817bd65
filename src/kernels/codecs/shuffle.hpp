// SPDX-License-Identifier: BSD-3-Clause
// Byte planes: the first bytes of all numbers, then the second ones, and so on; what is left over stays at the end. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offpath::codecs {

// Numbers of `width` bytes: 2, 4 or 8; anything else is copied. `out` is another place, of as many bytes.
void shuffle(const uint8_t* in, uint8_t* out, size_t bytes, unsigned width);
void unshuffle(const uint8_t* in, uint8_t* out, size_t bytes, unsigned width);

}  // namespace offpath::codecs
