// SPDX-License-Identifier: BSD-3-Clause
// LZ4 blocks without a frame. The level is its acceleration: more is faster and longer.
#include "kernels/codecs/codec.hpp"

#include <lz4.h>

#include <algorithm>
#include <climits>
#include <vector>

namespace offpath::codecs {
namespace {

class Lz4 : public Codec {
 public:
  explicit Lz4(int level) : acceleration_(std::max(level, 1)), state_((LZ4_sizeofState() + 7) / 8) {}

  size_t encode(Bytes in, Room out) override {
    if (in.size() > LZ4_MAX_INPUT_SIZE) return 0;
    const int written = LZ4_compress_fast_extState(
        state_.data(), reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
        static_cast<int>(in.size()), static_cast<int>(std::min<size_t>(out.size(), INT_MAX)), acceleration_);
    return written > 0 ? static_cast<size_t>(written) : 0;
  }
  bool decode(Bytes in, Room out) override {
    if (in.size() > INT_MAX || out.size() > LZ4_MAX_INPUT_SIZE) return false;
    const int written =
        LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
                            static_cast<int>(in.size()), static_cast<int>(out.size()));
    return written >= 0 && static_cast<size_t>(written) == out.size();
  }

 private:
  const int acceleration_;
  std::vector<uint64_t> state_;
};

}  // namespace

std::unique_ptr<Codec> make_lz4(int level);
std::unique_ptr<Codec> make_lz4(int level) { return std::make_unique<Lz4>(level); }

}  // namespace offpath::codecs
