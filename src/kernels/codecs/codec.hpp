// SPDX-License-Identifier: BSD-3-Clause
// Codec: one way to write bytes in fewer bytes, and to read them again. An object keeps what its library needs from one call to
// the next; it is used by one thread at a time. Nothing here fails but by its result.
//
// Decoders take anything: they write nowhere but to `out`, also when somebody writes there meanwhile. Encoders need
// input that stands still.
//
// Adding a codec: a file that implements this, a row in codecs.def. Codecs that lose something are in numbers.hpp.
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
#define OFFPATH_NUMBER_CODEC(name, number) name = number,
#include "kernels/codecs/codecs.def"
};

inline constexpr CodecId kCodecs[] = {
#define OFFPATH_CODEC(name, number) CodecId::name,
#include "kernels/codecs/codecs.def"
};

// Those that lose something of floating-point numbers.
inline constexpr CodecId kNumberCodecs[] = {
#define OFFPATH_NUMBER_CODEC(name, number) CodecId::name,
#include "kernels/codecs/codecs.def"
};
constexpr bool is_lossy(CodecId codec) {
  for (const CodecId lossy : kNumberCodecs) {
    if (codec == lossy) return true;
  }
  return false;
}

// One bit for each codec that this build has: what a receiver says it can read.
constexpr uint32_t bit_of(CodecId codec) { return uint32_t{1} << static_cast<uint8_t>(codec); }
uint32_t all_codecs();
inline bool is_built(CodecId codec) { return (all_codecs() & bit_of(codec)) != 0; }

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

// What bytes are made of.
enum class Elements : uint8_t { unknown = 0, float32 = 4, float64 = 8 };
constexpr size_t bytes_of(Elements elements) { return static_cast<size_t>(elements); }

// How far off a number may be when it arrives. Relative to the distance between a chunk's largest and smallest one.
enum class BoundKind : uint8_t { none, absolute, relative };
struct Bound {
  BoundKind kind = BoundKind::none;
  double value = 0;
  bool operator==(const Bound&) const = default;
};

// What a chunk has lost.
struct Loss {
  double largest_error = 0;
  uint32_t check = 0;  // checksum of what arrives
};

// A codec, how hard it tries, and the filter before it: bytes are sorted by their place in numbers of `width` bytes. Or a
// lossy one, with its bound and what there is to be coded.
struct Method {
  CodecId codec = CodecId::none;
  uint8_t width = 1;  // 1: as they are; 2, 4, 8
  int8_t level = 0;
  Bound bound = {};
  Elements elements = Elements::unknown;
  bool operator==(const Method&) const = default;
  explicit operator bool() const { return codec != CodecId::none; }
};

constexpr bool is_width(unsigned width) { return width == 1 || width == 2 || width == 4 || width == 8; }

// What is wanted: nothing, one method for everything, or whatever pays. A lossy method is for numbers only; what else there
// is goes by whatever pays.
struct Wish {
  bool decides_itself = false;
  Method method;
  bool reductions = false;  // a lossy one for what is reduced, too
  bool samples = false;     // nothing is coded, but now and then it is tried what that would leave
  bool operator==(const Wish&) const = default;
  bool is_off() const { return !decides_itself && !method; }
  bool is_lossy() const { return codecs::is_lossy(method.codec); }
  // For what is no number.
  Wish lossless() const { return is_lossy() ? Wish{true, {}, false} : *this; }
  // For numbers.
  Method for_numbers(Elements elements) const {
    Method out = method;
    out.elements = elements;
    return out;
  }
};

const char* name_of(CodecId codec);
std::string text_of(const Method& method);  // as parse_wish() takes it
// off, auto, sample, CODEC[:KEY=NUMBER[,KEY=NUMBER]] with the keys level and shuffle; LOSSY:abs=X or LOSSY:rel=X, and ",reductions".
base::Result<Wish> parse_wish(std::string_view text);
// What else a person may write; for error messages.
std::string known_wishes();

}  // namespace offpath::codecs
