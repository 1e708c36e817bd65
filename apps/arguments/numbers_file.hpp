// SPDX-License-Identifier: BSD-3-Clause
// What an application sends, for whoever wants to see what compression makes of it: doubles, one after the other.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>

namespace arguments {

class NumbersFile {
 public:
  // Nothing is written under an empty name.
  explicit NumbersFile(const std::string& name) : name_(name) {
    if (!name.empty()) file_.open(name, std::ios::binary);
  }
  void write(const double* numbers, std::size_t count) {
    if (name_.empty()) return;
    file_.write(reinterpret_cast<const char*>(numbers), static_cast<std::streamsize>(count * sizeof(double)));
  }
  // Empty, or one line for the user.
  std::string close() {
    if (name_.empty()) return {};
    file_.close();
    if (file_) return {};
    return "'" + name_ + "' was not written (" + std::strerror(errno) +
           "). Give --field a file in a folder you may write";
  }

 private:
  const std::string name_;
  std::ofstream file_;
};

}  // namespace arguments
