// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/codecs/numbers.hpp"

#include "base/bytes.hpp"
#include "kernels/codecs/coding.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace offpath::codecs {

#define OFFPATH_NUMBER_CODEC(name, number) std::unique_ptr<NumberCodec> make_##name();
#include "kernels/codecs/codecs.def"

std::unique_ptr<NumberCodec> make_number_codec(CodecId codec) {
  switch (codec) {
#define OFFPATH_NUMBER_CODEC(name, number) \
  case CodecId::name:                      \
    return make_##name();
#include "kernels/codecs/codecs.def"
    default:
      return nullptr;
  }
}

namespace {

constexpr size_t kFrameBytes = 13;

double value_at(Bytes bytes, size_t index, Elements elements) {
  if (elements == Elements::float32) {
    float value;
    std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
    return static_cast<double>(value);
  }
  double value;
  std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

// How far off a number may be; 0: there is one that is not finite, or is not between the others by a finite distance.
double tolerance_of(const Method& method, Bytes in) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  bool finite = true;
  for (size_t i = 0; i < in.size() / bytes_of(method.elements); ++i) {
    const double value = value_at(in, i, method.elements);
    finite = finite && std::isfinite(value);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (!finite) return 0;
  const double wanted =
      method.bound.kind == BoundKind::relative ? method.bound.value * (most - least) : method.bound.value;
  return std::isfinite(wanted) ? std::max(wanted, std::numeric_limits<double>::min()) : 0;
}

double largest_error(Elements elements, Bytes before, Bytes after) {
  double largest = 0;
  for (size_t i = 0; i < before.size() / bytes_of(elements); ++i) {
    const double error = std::fabs(value_at(after, i, elements) - value_at(before, i, elements));
    if (!(error <= largest)) largest = error;  // also what is no number
    if (std::isnan(largest)) break;
  }
  return largest;
}

}  // namespace

NumberCodec* Numbers::codec_of(CodecId codec) {
  auto& made = codecs_[codec];
  if (made == nullptr) made = make_number_codec(codec);
  return made.get();
}

void Numbers::forget() {
  codecs_.clear();
  std::vector<uint8_t>().swap(again_);
}

size_t Numbers::encode(const Method& method, Bytes in, Room out, Loss& loss) {
  const size_t width = bytes_of(method.elements);
  if (width == 0 || in.empty() || in.size() % width != 0 || in.size() > UINT32_MAX || out.size() <= kFrameBytes)
    return 0;
  NumberCodec* codec = codec_of(method.codec);
  const double tolerance = tolerance_of(method, in);
  if (codec == nullptr || tolerance == 0) return 0;
  const size_t written = codec->encode(method.elements, tolerance, in, out.subspan(kFrameBytes));
  if (written == 0) return 0;
  again_.resize(in.size());
  if (!codec->decode(method.elements, tolerance, Bytes(out).subspan(kFrameBytes, written), again_)) return 0;
  loss.largest_error = largest_error(method.elements, in, again_);
  if (!(loss.largest_error <= tolerance)) return 0;
  loss.check = checksum(again_);
  base::ByteWriter frame(out.data());
  frame.number(static_cast<uint8_t>(width));
  frame.number(static_cast<uint32_t>(in.size()));
  frame.number(std::bit_cast<uint64_t>(tolerance));
  return kFrameBytes + written;
}

bool Numbers::decode(CodecId codec, Bytes in, Room out) {
  NumberCodec* known = codec_of(codec);
  if (known == nullptr || in.size() <= kFrameBytes || out.empty()) return false;
  base::ByteReader frame(in.data());
  const auto width = frame.number<uint8_t>();
  const auto bytes = frame.number<uint32_t>();
  const auto tolerance = std::bit_cast<double>(frame.number<uint64_t>());
  if (bytes != out.size()) return false;
  const Elements elements = width == 4 ? Elements::float32 : width == 8 ? Elements::float64 : Elements::unknown;
  if (elements == Elements::unknown || out.size() % bytes_of(elements) != 0) return false;
  if (!std::isfinite(tolerance) || tolerance <= 0) return false;
  return known->decode(elements, tolerance, in.subspan(kFrameBytes), out);
}

}  // namespace offpath::codecs
