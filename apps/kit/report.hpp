// SPDX-License-Identifier: BSD-3-Clause
// The files that a program leaves, and what several programs have in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "json.hpp"

namespace kit {

// The file of --json. Empty when it was written or nobody wants it, else one line for the user.
std::string write_json(const std::string& path, const Json& json);

// 64 bits as a text: readers of JSON round numbers of that size.
std::string hex(std::uint64_t value);

// The file of --field: what a program sends, for whoever wants to see what compression makes of it. Doubles, one after the
// other; under an empty name nothing is written.
class NumbersFile {
 public:
  explicit NumbersFile(const std::string& path);
  void write(const double* numbers, std::size_t count);
  // Empty, or one line for the user.
  std::string close();

 private:
  const std::string path_;
  std::FILE* file_;
  bool good_;
};

}  // namespace kit
