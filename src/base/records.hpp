// SPDX-License-Identifier: BSD-3-Clause
// Records of fixed layout, one after the other in a stretch of bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace offpath::base {

class RecordWriter {
 public:
  explicit RecordWriter(std::vector<uint8_t>& out) : out_(out) {}
  template <typename T>
  void write(const T& record) {
    write_all(std::span<const T>(&record, 1));
  }
  template <typename T>
  void write_all(std::span<const T> records) {
    static_assert(std::is_trivially_copyable_v<T>);
    const size_t at = out_.size();
    out_.resize(at + records.size_bytes());
    if (!records.empty()) memcpy(&out_[at], records.data(), records.size_bytes());
  }

 private:
  std::vector<uint8_t>& out_;
};

// Reads each byte once: others may write them meanwhile. False: there are not so many.
class RecordReader {
 public:
  explicit RecordReader(std::span<const uint8_t> from) : left_(from) {}
  template <typename T>
  bool read(T& record) {
    return read_to(&record, 1);
  }
  template <typename T>
  bool read_all(std::vector<T>& records, uint64_t count) {
    if (count > left_.size() / sizeof(T)) return false;
    records.resize(count);
    return read_to(records.data(), count);
  }

 private:
  template <typename T>
  bool read_to(T* records, size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count > left_.size() / sizeof(T)) return false;
    if (count > 0) memcpy(static_cast<void*>(records), left_.data(), count * sizeof(T));
    left_ = left_.subspan(count * sizeof(T));
    return true;
  }
  std::span<const uint8_t> left_;
};

}  // namespace offpath::base
