// SPDX-License-Identifier: BSD-3-Clause
// Zstandard. A chunk is one frame, whose header says its length. The library's checksum is off: chunks have one.
#include "kernels/codecs/codec.hpp"

#include <zstd.h>

namespace offpath::codecs {
namespace {

constexpr int kZstdLevel = 1;

struct FreeZstd {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Not of a format before 1.0, whose decoders nobody looks after, nor several.
bool is_one_frame(Bytes in) {
  uint32_t magic = 0;
  for (size_t i = 0; i < sizeof(magic) && i < in.size(); ++i) magic |= uint32_t{in[i]} << (8 * i);
  return magic == ZSTD_MAGICNUMBER && ZSTD_findFrameCompressedSize(in.data(), in.size()) == in.size();
}

class Zstd : public Codec {
 public:
  explicit Zstd(int level) : level_(level == 0 ? kZstdLevel : level) {}

  size_t encode(Bytes in, Room out) override {
    if (encoder_ == nullptr) encoder_.reset(ZSTD_createCCtx());
    if (encoder_ == nullptr) return 0;
    const size_t written = ZSTD_compressCCtx(encoder_.get(), out.data(), out.size(), in.data(), in.size(), level_);
    return ZSTD_isError(written) != 0 ? 0 : written;
  }
  bool decode(Bytes in, Room out) override {
    if (decoder_ == nullptr) decoder_.reset(ZSTD_createDCtx());
    if (decoder_ == nullptr || !is_one_frame(in)) return false;
    const size_t written = ZSTD_decompressDCtx(decoder_.get(), out.data(), out.size(), in.data(), in.size());
    return ZSTD_isError(written) == 0 && written == out.size();
  }

 private:
  const int level_;
  std::unique_ptr<ZSTD_CCtx, FreeZstd> encoder_;
  std::unique_ptr<ZSTD_DCtx, FreeZstd> decoder_;
};

}  // namespace

std::unique_ptr<Codec> make_zstd(int level);
std::unique_ptr<Codec> make_zstd(int level) { return std::make_unique<Zstd>(level); }

}  // namespace offpath::codecs
