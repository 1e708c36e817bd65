// SPDX-License-Identifier: BSD-3-Clause
// NumberCodec: floating-point numbers in fewer bytes, of which something is lost; Numbers: those codecs at work. What arrives
// is known before it is sent, as who encodes decodes, too: no number is further off than was allowed, or the chunk is
// not coded at all. Chunks that hold what is no finite number are not, either.
//
// The frame of a coded chunk: bytes of a number (1 byte: 4 or 8), of all of them (4 bytes), how far off they may be (8 bytes, a
// double), what the codec wrote; little endian. Decoders take anything, as those of codec.hpp.
#pragma once

#include "kernels/codecs/codec.hpp"

#include <map>
#include <vector>

namespace offpath::codecs {

class NumberCodec {
 public:
  virtual ~NumberCodec() = default;
  // `tolerance` is finite and more than 0; whole numbers of that kind, at any address.
  virtual size_t encode(Elements elements, double tolerance, Bytes in, Room out) = 0;
  virtual bool decode(Elements elements, double tolerance, Bytes in, Room out) = 0;
};

// Null: this build does not have it.
std::unique_ptr<NumberCodec> make_number_codec(CodecId codec);

class Numbers {
 public:
  // As Coding.
  size_t encode(const Method& method, Bytes in, Room out, Loss& loss);
  bool decode(CodecId codec, Bytes in, Room out);
  void forget();

 private:
  NumberCodec* codec_of(CodecId codec);

  std::map<CodecId, std::unique_ptr<NumberCodec>> codecs_;
  std::vector<uint8_t> again_;
};

}  // namespace offpath::codecs
