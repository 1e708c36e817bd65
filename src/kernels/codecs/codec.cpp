// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/codecs/codec.hpp"

#include <charconv>

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
  }
  return nullptr;
}

const char* name_of(CodecId codec) {
  switch (codec) {
    case CodecId::none:
      return "off";
#define OFFPATH_CODEC(name, number) \
  case CodecId::name:               \
    return #name;
#include "kernels/codecs/codecs.def"
  }
  return "unknown";
}

std::string text_of(const Method& method) {
  std::string out = name_of(method.codec);
  const char* separator = ":";
  if (method.level != 0) out += separator + ("level=" + std::to_string(method.level)), separator = ",";
  if (method.width != 1) out += separator + ("shuffle=" + std::to_string(method.width));
  return out;
}

std::string known_wishes() {
  std::string out = "off, auto";
  for (const CodecId codec : kCodecs) out += std::string(", ") + name_of(codec);
  return out + "; with :level=N,shuffle=2|4|8";
}

static bool set_option(Method& method, std::string_view option) {
  const size_t equals = option.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view key = option.substr(0, equals), text = option.substr(equals + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (key == "level" && number >= 1 && number <= 22) return method.level = static_cast<int8_t>(number), true;
  if (key == "shuffle" && number > 0 && is_width(static_cast<unsigned>(number))) {
    return method.width = static_cast<uint8_t>(number), true;
  }
  return false;
}

Result<Wish> parse_wish(std::string_view text) {
  Wish wish;
  if (text == "off") return wish;
  wish.decides_itself = text == "auto";
  if (wish.decides_itself) return wish;
  const size_t colon = text.find(':');
  for (const CodecId codec : kCodecs) {
    if (text.substr(0, colon) == name_of(codec)) wish.method.codec = codec;
  }
  bool known = static_cast<bool>(wish.method);
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  known = known && (colon == std::string_view::npos || !rest.empty());
  while (known && !rest.empty()) {
    const size_t comma = rest.find(',');
    known = set_option(wish.method, rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  if (known) return wish;
  return Status::error(OFFPATH_ERR_ARGUMENT, "'%.60s' is no compression (nothing is compressed). Use one of %s",
                       std::string(text).c_str(), known_wishes().c_str());
}

}  // namespace offpath::codecs
