// SPDX-License-Identifier: BSD-3-Clause
#include "json_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

namespace report {

std::string write_json(const std::string& path, const nlohmann::ordered_json& json) {
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  file.close();
  if (file) return {};
  return "'" + path + "' was not written (" + std::strerror(errno) + "). Give --json a file in a folder you may write";
}

}  // namespace report
