// SPDX-License-Identifier: BSD-3-Clause
// DEFLATE as it is, and in zlib's clothes (a header and Adler-32): what the engines of DPUs speak. By libdeflate.
#include "kernels/codecs/codec.hpp"

#include <libdeflate.h>

#include <algorithm>

namespace offpath::codecs {
namespace {

constexpr int kDeflateLevel = 1, kMostDeflateLevel = 12;

struct FreeDeflate {
  void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
  void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
};

enum class Form : uint8_t { bare, zlib };

class Deflate : public Codec {
 public:
  Deflate(int level, Form form)
      : level_(level == 0 ? kDeflateLevel : std::min(level, kMostDeflateLevel)), form_(form) {}

  size_t encode(Bytes in, Room out) override {
    if (encoder_ == nullptr) encoder_.reset(libdeflate_alloc_compressor(level_));
    if (encoder_ == nullptr) return 0;
    const auto compress = form_ == Form::zlib ? libdeflate_zlib_compress : libdeflate_deflate_compress;
    return compress(encoder_.get(), in.data(), in.size(), out.data(), out.size());
  }
  bool decode(Bytes in, Room out) override {
    if (decoder_ == nullptr) decoder_.reset(libdeflate_alloc_decompressor());
    if (decoder_ == nullptr) return false;
    const auto decompress = form_ == Form::zlib ? libdeflate_zlib_decompress_ex : libdeflate_deflate_decompress_ex;
    size_t read = 0;
    // Without a place for the length it takes nothing that is shorter than `out`.
    return decompress(decoder_.get(), in.data(), in.size(), out.data(), out.size(), &read, nullptr) ==
               LIBDEFLATE_SUCCESS &&
           read == in.size();
  }

 private:
  const int level_;
  const Form form_;
  std::unique_ptr<libdeflate_compressor, FreeDeflate> encoder_;
  std::unique_ptr<libdeflate_decompressor, FreeDeflate> decoder_;
};

}  // namespace

std::unique_ptr<Codec> make_deflate(int level);
std::unique_ptr<Codec> make_deflate(int level) { return std::make_unique<Deflate>(level, Form::bare); }
std::unique_ptr<Codec> make_zlib(int level);
std::unique_ptr<Codec> make_zlib(int level) { return std::make_unique<Deflate>(level, Form::zlib); }

}  // namespace offpath::codecs
