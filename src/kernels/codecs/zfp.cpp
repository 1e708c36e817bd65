// SPDX-License-Identifier: BSD-3-Clause
// zfp with a largest error, in one dimension: nobody here knows more of the shape. Block by block, because the library reads
// and writes its bits without looking for their end: each block has room for the most that one can take, and what has
// read further than it came is refused.
#include "kernels/codecs/numbers.hpp"

#if OFFPATH_HAS_ZFP
#include <zfp.h>

#include <algorithm>
#include <cstring>
#endif

namespace offpath::codecs {

std::unique_ptr<NumberCodec> make_zfp();

#if OFFPATH_HAS_ZFP
namespace {

constexpr size_t kValues = 4;           // of a block
constexpr size_t kMostBlockBytes = 64;  // 271 bits at most: sign, exponent, 4 x 64 planes and 3 tests

struct Close {
  void operator()(zfp_stream* stream) const { zfp_stream_close(stream); }
  void operator()(bitstream* bits) const { stream_close(bits); }
};

size_t encode_block(zfp_stream* stream, const float* values) { return zfp_encode_block_float_1(stream, values); }
size_t encode_block(zfp_stream* stream, const double* values) { return zfp_encode_block_double_1(stream, values); }
size_t decode_block(zfp_stream* stream, float* values) { return zfp_decode_block_float_1(stream, values); }
size_t decode_block(zfp_stream* stream, double* values) { return zfp_decode_block_double_1(stream, values); }

class Zfp : public NumberCodec {
 public:
  size_t encode(Elements elements, double tolerance, Bytes in, Room out) override {
    return elements == Elements::float32 ? encode_all<float>(tolerance, in, out)
                                         : encode_all<double>(tolerance, in, out);
  }
  bool decode(Elements elements, double tolerance, Bytes in, Room out) override {
    return elements == Elements::float32 ? decode_all<float>(tolerance, in, out)
                                         : decode_all<double>(tolerance, in, out);
  }

 private:
  // A stream over so many bytes of ours. The library may work on them by words: there are whole ones.
  bool prepare(size_t bytes, double tolerance) {
    if (stream_ == nullptr) stream_.reset(zfp_stream_open(nullptr));
    if (words_.size() * sizeof(uint64_t) < bytes) {
      words_.resize(bytes / sizeof(uint64_t) + 1);
      bits_.reset(stream_open(words_.data(), words_.size() * sizeof(uint64_t)));
    }
    if (stream_ == nullptr || bits_ == nullptr) return false;
    zfp_stream_set_bit_stream(stream_.get(), bits_.get());
    zfp_stream_rewind(stream_.get());
    zfp_stream_set_accuracy(stream_.get(), tolerance);
    return true;
  }

  template <class T>
  size_t encode_all(double tolerance, Bytes in, Room out) {
    const size_t count = in.size() / sizeof(T);
    if (!prepare((count / kValues + 2) * kMostBlockBytes, tolerance)) return 0;
    for (size_t at = 0; at < count; at += kValues) {
      T values[kValues];
      const size_t some = std::min(kValues, count - at);
      std::memcpy(values, in.data() + at * sizeof(T), some * sizeof(T));
      std::fill(values + some, values + kValues, values[some - 1]);
      encode_block(stream_.get(), values);
    }
    const size_t bytes = (stream_wtell(bits_.get()) + 7) / 8;
    zfp_stream_flush(stream_.get());  // zeros up to a word, which the reader adds again
    if (bytes > out.size()) return 0;
    std::memcpy(out.data(), words_.data(), bytes);
    return bytes;
  }

  template <class T>
  bool decode_all(double tolerance, Bytes in, Room out) {
    if (!prepare(in.size() + kMostBlockBytes, tolerance)) return false;
    auto* const bytes = reinterpret_cast<uint8_t*>(words_.data());
    std::memcpy(bytes, in.data(), in.size());
    std::memset(bytes + in.size(), 0, kMostBlockBytes);
    const size_t count = out.size() / sizeof(T);
    for (size_t at = 0; at < count; at += kValues) {
      T values[kValues];
      decode_block(stream_.get(), values);
      if (stream_rtell(bits_.get()) > in.size() * 8) return false;
      std::memcpy(out.data() + at * sizeof(T), values, std::min(kValues, count - at) * sizeof(T));
    }
    return (stream_rtell(bits_.get()) + 7) / 8 == in.size();
  }

  std::vector<uint64_t> words_;
  std::unique_ptr<bitstream, Close> bits_;
  std::unique_ptr<zfp_stream, Close> stream_;
};

}  // namespace

std::unique_ptr<NumberCodec> make_zfp() { return std::make_unique<Zfp>(); }
#else
std::unique_ptr<NumberCodec> make_zfp() { return nullptr; }
#endif

}  // namespace offpath::codecs
