// SPDX-License-Identifier: BSD-3-Clause
#include "base/energy.hpp"

#include "base/fd.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace offpath::base {
namespace {

std::string text_of(const std::string& file) {
  const Fd opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text;
  const ssize_t got = opened.valid() ? read(opened.get(), text.data(), text.size()) : 0;
  std::string_view line(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  return std::string(line.substr(0, line.find('\n')));
}

std::optional<uint64_t> number_in(const std::string& file) {
  const std::string text = text_of(file);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// In order.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const opened = opendir(folder.c_str());
  if (opened == nullptr) return names;
  while (const dirent* const entry = readdir(opened)) names.emplace_back(entry->d_name);
  closedir(opened);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

EnergyMeter::EnergyMeter(const std::string& root) {
  find_zones(root + "/class/powercap");
  if (counters_.empty()) find_sensors(root + "/class/hwmon");
}

bool EnergyMeter::add(const std::string& file, uint64_t range_uj) {
  const auto value = number_in(file);
  if (value) counters_.push_back({file, range_uj, *value});
  return value.has_value();
}

bool EnergyMeter::add_zone(const std::string& folder) {
  return add(folder + "/energy_uj", number_in(folder + "/max_energy_range_uj").value_or(0));
}

// A package's zone is intel-rapl:N, AMD's, too; parts of it are intel-rapl:N:M, and of these only memory is not in its sum.
void EnergyMeter::find_zones(const std::string& folder) {
  constexpr std::string_view kZone = "intel-rapl:";
  bool all = true;
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with(kZone)) continue;
    const bool is_part = name.find(':', kZone.size()) != std::string::npos;
    const std::string what = text_of(folder + "/" + name + "/name");
    if (is_part ? what == "dram" : what.starts_with("package")) all &= add_zone(folder + "/" + name);
  }
  if (!all) counters_.clear();
}

void EnergyMeter::find_sensors(const std::string& folder) {
  constexpr std::string_view kInput = "_input";
  bool all = true;
  for (const std::string& sensor : names_in(folder)) {
    for (const std::string& name : names_in(folder + "/" + sensor)) {
      if (!name.starts_with("energy") || !name.ends_with(kInput)) continue;
      const std::string file = folder + "/" + sensor + "/" + name;
      const std::string what = text_of(file.substr(0, file.size() - kInput.size()) + "_label");
      if (!what.starts_with("Ecore")) all &= add(file, 0);  // cores are in the sum of their socket
    }
  }
  if (!all) counters_.clear();
}

uint64_t EnergyMeter::take_uj(uint64_t now_ns) {
  const bool in_time = looked_ns_ == 0 || now_ns - looked_ns_ <= kLongestNs;
  looked_ns_ = now_ns;
  uint64_t sum = 0;
  for (Counter& counter : counters_) {
    const auto value = number_in(counter.file);
    const bool anew = value && *value < counter.value_uj;
    if (!value || !in_time || (anew && counter.range_uj < counter.value_uj)) {
      counters_.clear();
      return 0;
    }
    sum += anew ? counter.range_uj - counter.value_uj + *value : *value - counter.value_uj;
    counter.value_uj = *value;
  }
  return sum;
}

}  // namespace offpath::base
