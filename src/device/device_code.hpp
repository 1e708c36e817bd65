// SPDX-License-Identifier: BSD-3-Clause
// The code for devices that an OpenMP compiler has put into a program or a library: a shared object for each processor, somewhere
// among the file's data. LLVM 14 marks it by a symbol that stripping removes, newer ones by sections of their own; so it is
// found by what it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace offpath::device {

// Those for that machine (e_machine), in the order of the file; not the file itself. Pure: what only looks like one is left out.
std::vector<std::span<const uint8_t>> device_code_in(std::span<const uint8_t> file, uint32_t machine);

// A file's bytes, for as long as it lives.
class FileBytes {
 public:
  // None: it is not there.
  static std::optional<FileBytes> of(const std::string& path);
  FileBytes(FileBytes&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  FileBytes& operator=(FileBytes&&) = delete;
  ~FileBytes();

  std::span<const uint8_t> get() const { return bytes_; }

 private:
  explicit FileBytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  std::span<const uint8_t> bytes_;
};

}  // namespace offpath::device
