// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/codecs/coding.hpp"

#include "kernels/codecs/shuffle.hpp"

#include <libdeflate.h>

namespace offpath::codecs {

Codec* Coding::codec_of(const Method& method) {
  auto& codec = codecs_[{method.codec, method.level}];
  if (codec == nullptr) codec = make_codec(method.codec, method.level);
  return codec.get();
}

Room Coding::filtered(size_t bytes) {
  if (filtered_.size() < bytes) filtered_.resize(bytes);
  return Room(filtered_).first(bytes);
}

void Coding::forget() {
  if (keep_ == Keep::all) return;
  codecs_.clear();
  numbers_.forget();
  std::vector<uint8_t>().swap(filtered_);
}

size_t Coding::encode(const Method& method, Bytes in, Room out, Loss* loss) {
  if (is_lossy(method.codec)) {
    Loss unsaid;
    const size_t written = numbers_.encode(method, in, out, loss == nullptr ? unsaid : *loss);
    forget();
    return written;
  }
  Codec* codec = codec_of(method);
  if (codec == nullptr || in.empty()) return 0;
  if (method.width > 1) {
    const Room sorted = filtered(in.size());
    shuffle(in.data(), sorted.data(), in.size(), method.width);
    in = sorted;
  }
  const size_t written = codec->encode(in, out);
  forget();
  return written;
}

bool Coding::decode(const Method& method, Bytes in, Room out) {
  if (is_lossy(method.codec)) {
    const bool whole = method.width == 1 && numbers_.decode(method.codec, in, out);
    forget();
    return whole;
  }
  Codec* codec = is_width(method.width) ? codec_of({method.codec, 1, 0}) : nullptr;  // no level matters here
  if (codec == nullptr) return false;
  const Room to = method.width > 1 ? filtered(out.size()) : out;
  const bool whole = codec->decode(in, to);
  if (whole && method.width > 1) unshuffle(to.data(), out.data(), out.size(), method.width);
  forget();
  return whole;
}

uint32_t checksum(Bytes bytes) { return libdeflate_crc32(0, bytes.data(), bytes.size()); }

}  // namespace offpath::codecs
