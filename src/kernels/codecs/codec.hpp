// SPDX-License-Identifier: BSD-3-Clause
// Codec: one way to write bytes in fewer bytes, and to read them again. An object keeps what its library needs from one call to
// the next; it is used by one thread at a time. Nothing here fails but by its result.
//
// Decoders take anything: they write nowhere but to `out`, also when somebody writes there meanwhile. Encoders need
// input that stands still.
//
// Adding a codec: a file that implements this, a row in codecs.def.
#pragma once

#include "base/result.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace offpath::codecs {

using Bytes = std::span<const uint8_t>;
using Room = std::span<uint8_t>;

enum class CodecId : uint8_t {
  none = 0,
#define OFFPATH_CODEC(name, number) name = number,
#include "kernels/codecs/codecs.def"
};

inline constexpr CodecId kCodecs[] = {
#define OFFPATH_CODEC(name, number) CodecId::name,
#include "kernels/codecs/codecs.def"
};

// One bit for each codec that is here: what a receiver says it can read.
constexpr uint32_t bit_of(CodecId codec) { return uint32_t{1} << static_cast<uint8_t>(codec); }
constexpr uint32_t all_codecs() {
  uint32_t bits = 0;
  for (const CodecId codec : kCodecs) bits |= bit_of(codec);
  return bits;
}

class Codec {
 public:
  virtual ~Codec() = default;
  // Bytes written; 0: they do not fit.
  virtual size_t encode(Bytes in, Room out) = 0;
  // Whether `in` means exactly as many bytes as `out` has; they are there then.
  virtual bool decode(Bytes in, Room out) = 0;
};

// `level`: 0 is the codec's default here, which is a fast one. Null: there is no such codec.
std::unique_ptr<Codec> make_codec(CodecId codec, int level);

// A codec, how hard it tries, and the filter before it: bytes are sorted by their place in numbers of `width` bytes.
struct Method {
  CodecId codec = CodecId::none;
  uint8_t width = 1;  // 1: as they are; 2, 4, 8
  int8_t level = 0;
  bool operator==(const Method&) const = default;
  explicit operator bool() const { return codec != CodecId::none; }
};

constexpr bool is_width(unsigned width) { return width == 1 || width == 2 || width == 4 || width == 8; }

// What is wanted: nothing, one method for everything, or whatever pays.
struct Wish {
  bool decides_itself = false;
  Method method;
  bool operator==(const Wish&) const = default;
  bool is_off() const { return !decides_itself && !method; }
};

const char* name_of(CodecId codec);
std::string text_of(const Method& method);  // as parse_wish() takes it
// off, auto, or CODEC[:KEY=NUMBER[,KEY=NUMBER]] with the keys level and shuffle.
base::Result<Wish> parse_wish(std::string_view text);
// What else a person may write; for error messages.
std::string known_wishes();

}  // namespace offpath::codecs
