// SPDX-License-Identifier: BSD-3-Clause
#include "device/region_name.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace offpath::device {

std::string region_name(const std::string& entry) {
  const std::string prefix = "__omp_offloading_";
  if (entry.rfind(prefix, 0) != 0) return entry;
  const size_t file = entry.find('_', prefix.size());
  const size_t function = file == std::string::npos ? file : entry.find('_', file + 1);
  const size_t line = entry.rfind("_l");
  if (function == std::string::npos || line == std::string::npos || line <= function) return entry;
  std::string name = entry.substr(function + 1, line - function - 1);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                     free);
  if (plain != nullptr) name = plain.get();
  return "line " + entry.substr(line + 2) + " of " + name;
}

}  // namespace offpath::device
