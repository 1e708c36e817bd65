// SPDX-License-Identifier: BSD-3-Clause
#include "client/mapping.hpp"

#include "base/environment.hpp"

#include <fstream>

namespace offpath::client {

using base::Environment;

namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
}

Mapping usual() {
  return {longest_without_loss(first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
                               first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled")),
          0};
}

}  // namespace

uint64_t longest_without_loss(const std::string& enabled, const std::string& shmem_enabled) {
  constexpr uint64_t kLargePage = 2 << 20;
  const auto chosen = [](const std::string& text, const char* word) { return text.find(word) != text.npos; };
  const bool shared_too =
      chosen(shmem_enabled, "[always]") || chosen(shmem_enabled, "[within_size]") || chosen(shmem_enabled, "[force]");
  return chosen(enabled, "[always]") && !shared_too ? kLargePage - 1 : UINT64_MAX;
}

Mapping Mapping::from_environment() {
  constexpr const char* kName = "OFFPATH_MAPPED";
  constexpr uint32_t kUsesThatPay = 12;  // moving costs about eleven copies
  const std::string value = Environment::text(kName);
  if (value.empty() || value == "allocated") return usual();
  if (value == "off" || value == "0") return {0, 0};
  if (value == "on") return {UINT64_MAX, kUsesThatPay};
  const bool is_number = value.size() < 10 && value.find_first_not_of("0123456789") == value.npos;
  if (is_number) return {UINT64_MAX, static_cast<uint32_t>(Environment::number(kName, 0, 0, UINT32_MAX - 1))};
  Environment::refuse(kName, value, "off, allocated, on, or a number of uses");
  return usual();
}

}  // namespace offpath::client
