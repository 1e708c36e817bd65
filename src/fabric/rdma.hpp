// SPDX-License-Identifier: BSD-3-Clause
// Whether this node has an RDMA network.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace offpath::fabric {

inline constexpr const char* kRdmaFolder = "/sys/class/infiniband";

// A port of a device listed in that folder is active.
inline bool has_rdma(const std::string& folder = kRdmaFolder) {
  std::error_code error;  // folders that are not there are empty
  for (const auto& device : std::filesystem::directory_iterator(folder, error)) {
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", error)) {
      std::ifstream file(port.path() / "state");
      std::string text;
      if (std::getline(file, text) && text.find("ACTIVE") != std::string::npos) return true;
    }
  }
  return false;
}

}  // namespace offpath::fabric
