// SPDX-License-Identifier: BSD-3-Clause
// The fields of a record in bytes, named once: one list of them is called with a writer and with a reader, so the two
// directions cannot disagree. A field is a number, an enumeration, a result, a text (array of char), an array, or a gap.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <array>
#include <span>
#include <type_traits>

namespace offpath::base {

// Bytes that mean nothing yet.
template <size_t N>
struct Gap {};

// The caller has room for what it writes.
class FieldWriter {
 public:
  explicit FieldWriter(uint8_t* out) : out_(out) {}
  template <typename... Fields>
  bool operator()(const Fields&... fields) {
    (put(fields), ...);
    return true;
  }
  uint8_t* end() const { return out_.end(); }

 private:
  template <typename T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, Code>) {
      out_.number(static_cast<int32_t>(value));
    } else if constexpr (std::is_enum_v<T>) {
      out_.number(static_cast<std::underlying_type_t<T>>(value));
    } else {
      out_.number(value);
    }
  }
  template <size_t N>
  void put(const Gap<N>&) {
    out_.zeros(N);
  }
  template <size_t N>
  void put(const char (&text)[N]) {
    out_.text(text);
  }
  template <size_t N>
  void put(const std::array<uint8_t, N>& bytes) {
    out_.raw(bytes.data(), N);
  }
  template <typename T, size_t N>
  void put(const std::array<T, N>& values) {
    for (const T& value : values) put(value);
  }

  ByteWriter out_;
};

// False, and nothing more is read: there are not so many bytes. What an enumeration gets may be none of its values.
class FieldReader {
 public:
  explicit FieldReader(std::span<const uint8_t> in) : in_(in.data()), left_(in.size()) {}
  template <typename... Fields>
  bool operator()(Fields&&... fields) {
    return (take(fields) && ...);
  }
  bool ended() const { return left_ == 0; }

 private:
  bool has(size_t bytes) {
    if (left_ < bytes) return false;
    left_ -= bytes;
    return true;
  }
  template <typename T>
  bool take(T& value) {
    if constexpr (std::is_same_v<T, Code>) {
      int32_t number = 0;
      if (!take(number)) return false;
      value = known_code(number);
    } else if constexpr (std::is_enum_v<T>) {
      if (!has(sizeof(T))) return false;
      value = static_cast<T>(in_.number<std::underlying_type_t<T>>());
    } else {
      if (!has(sizeof(T))) return false;
      value = in_.number<T>();
    }
    return true;
  }
  template <size_t N>
  bool take(Gap<N>&) {
    if (!has(N)) return false;
    in_.skip(N);
    return true;
  }
  template <size_t N>
  bool take(char (&text)[N]) {
    if (!has(N)) return false;
    in_.text(text);
    return true;
  }
  template <size_t N>
  bool take(std::array<uint8_t, N>& bytes) {
    if (!has(N)) return false;
    in_.raw(bytes.data(), N);
    return true;
  }
  template <typename T, size_t N>
  bool take(std::array<T, N>& values) {
    for (T& value : values) {
      if (!take(value)) return false;
    }
    return true;
  }

  ByteReader in_;
  size_t left_;
};

}  // namespace offpath::base
