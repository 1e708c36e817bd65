// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/codecs/codec.hpp"

#include "kernels/codecs/numbers.hpp"

#include <charconv>
#include <cmath>
#include <utility>

namespace offpath::codecs {

using base::Result;
using base::Status;

#define OFFPATH_CODEC(name, number) std::unique_ptr<Codec> make_##name(int level);
#include "kernels/codecs/codecs.def"

std::unique_ptr<Codec> make_codec(CodecId codec, int level) {
  switch (codec) {
    case CodecId::none:
      return nullptr;
#define OFFPATH_CODEC(name, number) \
  case CodecId::name:               \
    return make_##name(level);
#include "kernels/codecs/codecs.def"
    default:  // lossy
      return nullptr;
  }
}

uint32_t all_codecs() {
  static const uint32_t all = [] {
    uint32_t bits = 0;
    for (const CodecId codec : kCodecs) bits |= bit_of(codec);
    for (const CodecId codec : kNumberCodecs) bits |= make_number_codec(codec) == nullptr ? 0 : bit_of(codec);
    return bits;
  }();
  return all;
}

const char* name_of(CodecId codec) {
  switch (codec) {
    case CodecId::none:
      return "off";
#define OFFPATH_CODEC(name, number) \
  case CodecId::name:               \
    return #name;
#define OFFPATH_NUMBER_CODEC(name, number) OFFPATH_CODEC(name, number)
#include "kernels/codecs/codecs.def"
  }
  return "unknown";
}

std::string text_of(const Method& method) {
  std::string out = name_of(method.codec);
  if (method.bound.kind != BoundKind::none) {
    char value[32];
    const auto [end, error] = std::to_chars(value, value + sizeof(value), method.bound.value);
    const char* const kind = method.bound.kind == BoundKind::absolute ? ":abs=" : ":rel=";
    return out + kind + (error == std::errc() ? std::string(value, end) : "?");
  }
  const char* separator = ":";
  if (method.level != 0) out += separator + ("level=" + std::to_string(method.level)), separator = ",";
  if (method.width != 1) out += separator + ("shuffle=" + std::to_string(method.width));
  return out;
}

std::string known_wishes() {
  std::string out = "off, auto, sample", lossy;
  for (const CodecId codec : kCodecs) out += std::string(", ") + name_of(codec);
  out += "; with :level=N,shuffle=2|4|8";
  for (const CodecId codec : kNumberCodecs) {
    if (is_built(codec)) lossy += std::string(lossy.empty() ? "" : " or ") + name_of(codec);
  }
  return lossy.empty() ? out : out + "; " + lossy + " with :abs=X or :rel=X, and ,reductions";
}

namespace {

template <class T>
bool read_number(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool set_bound(Bound& bound, BoundKind kind, std::string_view text) {
  if (bound.kind != BoundKind::none || !read_number(text, bound.value)) return false;
  bound.kind = kind;
  return std::isnormal(bound.value) && bound.value > 0 && (kind == BoundKind::absolute || bound.value < 1);
}

bool set_option(Wish& wish, std::string_view option) {
  Method& method = wish.method;
  if (wish.is_lossy()) {
    if (option.starts_with("abs=")) return set_bound(method.bound, BoundKind::absolute, option.substr(4));
    if (option.starts_with("rel=")) return set_bound(method.bound, BoundKind::relative, option.substr(4));
    return option == "reductions" && !std::exchange(wish.reductions, true);
  }
  const size_t equals = option.find('=');
  int number = 0;
  if (equals == std::string_view::npos || !read_number(option.substr(equals + 1), number)) return false;
  const std::string_view key = option.substr(0, equals);
  if (key == "level" && number >= 1 && number <= 22) return method.level = static_cast<int8_t>(number), true;
  if (key == "shuffle" && number > 0 && is_width(static_cast<unsigned>(number))) {
    return method.width = static_cast<uint8_t>(number), true;
  }
  return false;
}

CodecId codec_named(std::string_view name) {
  for (const CodecId codec : kCodecs) {
    if (name == name_of(codec)) return codec;
  }
  for (const CodecId codec : kNumberCodecs) {
    if (name == name_of(codec)) return codec;
  }
  return CodecId::none;
}

}  // namespace

Result<Wish> parse_wish(std::string_view text) {
  Wish wish;
  if (text == "off") return wish;
  wish.samples = text == "sample";
  if (wish.samples) return wish;
  wish.decides_itself = text == "auto";
  if (wish.decides_itself) return wish;
  const size_t colon = text.find(':');
  wish.method.codec = codec_named(text.substr(0, colon));
  bool known = wish.method && is_built(wish.method.codec);
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  known = known && (colon == std::string_view::npos || !rest.empty());
  while (known && !rest.empty()) {
    const size_t comma = rest.find(',');
    known = set_option(wish, rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  known = known && wish.is_lossy() == (wish.method.bound.kind != BoundKind::none);
  if (known) return wish;
  return Status::error(OFFPATH_ERR_ARGUMENT, "'%.60s' is no compression (nothing is compressed). Use one of %s",
                       std::string(text).c_str(), known_wishes().c_str());
}

}  // namespace offpath::codecs
