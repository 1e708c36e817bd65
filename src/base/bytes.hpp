// SPDX-License-Identifier: BSD-3-Clause
// Little-endian numbers in byte arrays, whatever the processor: what segments, sockets and the wire agree on. The
// caller knows the sizes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace offpath::base {

// To that order and from it.
template <typename T>
T little_endian(T value) {
  if constexpr (std::endian::native == std::endian::little) return value;
  auto* bytes = reinterpret_cast<uint8_t*>(&value);
  std::reverse(bytes, bytes + sizeof(T));
  return value;
}

class ByteWriter {
 public:
  explicit ByteWriter(uint8_t* out) : out_(out) {}
  template <typename T>
  void number(T value) {
    value = little_endian(value);
    raw(&value, sizeof(T));
  }
  void raw(const void* bytes, size_t count) {
    if (count > 0) memcpy(out_, bytes, count);  // of no bytes there may be no address
    out_ += count;
  }
  template <size_t N>
  void text(const char (&value)[N]) {
    raw(value, N);
    out_[-1] = 0;
  }
  void zeros(size_t count) {
    memset(out_, 0, count);
    out_ += count;
  }
  uint8_t* end() const { return out_; }

 private:
  uint8_t* out_;
};

class ByteReader {
 public:
  explicit ByteReader(const uint8_t* in) : in_(in) {}
  template <typename T>
  T number() {
    T value;
    raw(&value, sizeof(T));
    return little_endian(value);
  }
  void raw(void* bytes, size_t count) {
    memcpy(bytes, in_, count);
    in_ += count;
  }
  // Always ended, and printable: it may go to the user's terminal.
  template <size_t N>
  void text(char (&value)[N]) {
    raw(value, N);
    value[N - 1] = '\0';
    std::replace_if(
        value, value + strlen(value), [](unsigned char c) { return c < 32 || c == 127; }, ' ');
  }
  void skip(size_t count) { in_ += count; }

 private:
  const uint8_t* in_;
};

}  // namespace offpath::base
