// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <fstream>

namespace kit {
namespace {

std::string not_written(const std::string& path, const char* option) {
  return "'" + path + "' was not written (" + std::strerror(errno) + "). Give " + option +
         " a file in a folder you may write";
}

}  // namespace

std::string write_json(const std::string& path, const Json& json) {
  if (path.empty()) return {};
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  file.close();
  return file ? "" : not_written(path, "--json");
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

NumbersFile::NumbersFile(const std::string& path)
    : path_(path), file_(path.empty() ? nullptr : std::fopen(path.c_str(), "wb")), good_(file_ || path.empty()) {}

void NumbersFile::write(const double* numbers, std::size_t count) {
  if (file_) good_ = std::fwrite(numbers, sizeof(double), count, file_) == count && good_;
}

std::string NumbersFile::close() {
  if (file_) good_ = std::fclose(file_) == 0 && good_;
  return good_ ? "" : not_written(path_, "--field");
}

}  // namespace kit
