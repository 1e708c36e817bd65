// SPDX-License-Identifier: BSD-3-Clause
// Coding: methods at work. Codecs and the filter's buffer are made at their first use and kept, which is most of what
// coding short chunks costs otherwise; Keep::nothing makes them anew for each chunk, to show that. One thread at a time.
#pragma once

#include "kernels/codecs/numbers.hpp"

#include <map>
#include <vector>

namespace offpath::codecs {

enum class Keep : uint8_t { all, nothing };

class Coding {
 public:
  explicit Coding(Keep keep = Keep::all) : keep_(keep) {}

  // As Codec. Lossy methods say what was lost; the others leave that alone.
  size_t encode(const Method& method, Bytes in, Room out, Loss* loss = nullptr);
  bool decode(const Method& method, Bytes in, Room out);

 private:
  Codec* codec_of(const Method& method);
  Room filtered(size_t bytes);
  void forget();

  const Keep keep_;
  std::map<std::pair<CodecId, int>, std::unique_ptr<Codec>> codecs_;
  Numbers numbers_;
  std::vector<uint8_t> filtered_;
};

// Of what a chunk means. It tells accidents, not forgery: that is the fabric's affair.
uint32_t checksum(Bytes bytes);

}  // namespace offpath::codecs
