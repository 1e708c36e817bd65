// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/codecs/shuffle.hpp"

#include "kernels/clones.hpp"

#include <cstring>

namespace offpath::codecs {
namespace {

// The innermost loop has a fixed length, so the compiler turns it into shuffles of registers.
template <unsigned kWidth>
inline size_t apart(const uint8_t* __restrict in, uint8_t* __restrict out, size_t bytes) {
  const size_t count = bytes / kWidth;
  for (size_t i = 0; i < count; ++i) {
    for (unsigned plane = 0; plane < kWidth; ++plane) out[plane * count + i] = in[i * kWidth + plane];
  }
  return count * kWidth;
}

template <unsigned kWidth>
inline size_t together(const uint8_t* __restrict in, uint8_t* __restrict out, size_t bytes) {
  const size_t count = bytes / kWidth;
  for (size_t i = 0; i < count; ++i) {
    for (unsigned plane = 0; plane < kWidth; ++plane) out[i * kWidth + plane] = in[plane * count + i];
  }
  return count * kWidth;
}

}  // namespace

OFFPATH_VECTOR_CLONES void shuffle(const uint8_t* in, uint8_t* out, size_t bytes, unsigned width) {
  size_t done = 0;
  if (width == 2) done = apart<2>(in, out, bytes);
  if (width == 4) done = apart<4>(in, out, bytes);
  if (width == 8) done = apart<8>(in, out, bytes);
  memcpy(out + done, in + done, bytes - done);
}

OFFPATH_VECTOR_CLONES void unshuffle(const uint8_t* in, uint8_t* out, size_t bytes, unsigned width) {
  size_t done = 0;
  if (width == 2) done = together<2>(in, out, bytes);
  if (width == 4) done = together<4>(in, out, bytes);
  if (width == 8) done = together<8>(in, out, bytes);
  memcpy(out + done, in + done, bytes - done);
}

}  // namespace offpath::codecs
