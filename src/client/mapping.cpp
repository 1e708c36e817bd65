// SPDX-License-Identifier: BSD-3-Clause
#include "client/mapping.hpp"

#include "base/environment.hpp"

namespace offpath::client {

using base::Environment;

Mapping Mapping::from_environment() {
  constexpr const char* kName = "OFFPATH_MAPPED";
  constexpr uint32_t kUsesThatPay = 12;  // moving costs about eleven copies
  const std::string value = Environment::text(kName);
  if (value.empty() || value == "allocated") return {};
  if (value == "off" || value == "0") return {false, 0};
  if (value == "on") return {true, kUsesThatPay};
  const bool is_number = value.size() < 10 && value.find_first_not_of("0123456789") == value.npos;
  if (is_number) return {true, static_cast<uint32_t>(Environment::number(kName, 0, 0, UINT32_MAX - 1))};
  Environment::refuse(kName, value, "off, allocated, on, or a number of uses");
  return {};
}

}  // namespace offpath::client
