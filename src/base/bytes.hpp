// SPDX-License-Identifier: BSD-3-Clause
// Little-endian numbers in byte arrays, whatever the processor: what segments, sockets and the wire agree on. The
// caller knows the sizes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace offpath::base {

class ByteWriter {
 public:
  explicit ByteWriter(uint8_t* out) : out_(out) {}
  template <typename T>
  void number(T value) {
    const auto bits = static_cast<uint64_t>(value);
    for (size_t i = 0; i < sizeof(T); ++i) *out_++ = static_cast<uint8_t>(bits >> (8 * i));
  }
  template <size_t N>
  void text(const char (&value)[N]) {
    memcpy(out_, value, N);
    out_[N - 1] = 0;
    out_ += N;
  }
  void zeros(size_t count) {
    memset(out_, 0, count);
    out_ += count;
  }

 private:
  uint8_t* out_;
};

class ByteReader {
 public:
  explicit ByteReader(const uint8_t* in) : in_(in) {}
  template <typename T>
  T number() {
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(T); ++i) bits |= static_cast<uint64_t>(*in_++) << (8 * i);
    return static_cast<T>(bits);
  }
  // Always ended, and printable: it may go to the user's terminal.
  template <size_t N>
  void text(char (&value)[N]) {
    memcpy(value, in_, N);
    value[N - 1] = '\0';
    std::replace_if(
        value, value + strlen(value), [](unsigned char c) { return c < 32 || c == 127; }, ' ');
    in_ += N;
  }
  void skip(size_t count) { in_ += count; }

 private:
  const uint8_t* in_;
};

}  // namespace offpath::base
