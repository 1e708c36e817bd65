// SPDX-License-Identifier: BSD-3-Clause
#include "device/device_list.hpp"

#include "base/environment.hpp"
#include "device/starter.hpp"
#include "session/dpus.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>

namespace offpath::device {

using base::Environment;
using base::Result;
using base::Status;

namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Status bad(const std::string& entry, const char* why) {
  return Status::error(OFFPATH_ERR_ARGUMENT,
                       "device '%.80s': %s (see OFFPATH_DEVICES). Write [NAME=]local or [NAME=]HOST:PORT[/ARCH]",
                       entry.c_str(), why);
}

Result<DeviceEntry> parse_entry(const std::string& text) {
  DeviceEntry entry;
  std::string rest = text;
  if (const size_t equals = rest.find('='); equals != std::string::npos) {
    entry.name = trimmed(rest.substr(0, equals));
    rest = trimmed(rest.substr(equals + 1));
    if (entry.name.empty()) return bad(text, "the name is empty");
  }
  entry.machine = kMachineAArch64;
  if (const size_t slash = rest.find('/'); slash != std::string::npos) {
    const std::string machine = rest.substr(slash + 1);
    if (machine != "x86_64" && machine != "aarch64") return bad(text, "its architecture is neither x86_64 nor aarch64");
    entry.machine = machine == "x86_64" ? kMachineX86_64 : kMachineAArch64;
    rest = rest.substr(0, slash);
  }
  entry.address = rest;
  if (entry.name.empty()) entry.name = rest;
  if (rest == "local") {
    entry.machine = own_machine();
    return entry;
  }
  if (const char* wrong = parse_address(rest, entry)) return bad(text, wrong);
  return entry;
}

}  // namespace

const char* parse_address(const std::string& text, DeviceEntry& entry) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return "it is neither local nor HOST:PORT";
  entry.address = text;
  entry.host = text.substr(0, colon);
  if (entry.host.size() > 2 && entry.host.front() == '[' && entry.host.back() == ']') {
    entry.host = entry.host.substr(1, entry.host.size() - 2);
  }
  const char* begin = text.data() + colon + 1;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(begin, end, entry.port);
  if (parsed.ec != std::errc() || parsed.ptr != end || entry.port == 0) return "its port is not in 1-65535";
  return nullptr;
}

uint32_t own_machine() {
#if defined(__aarch64__)
  return kMachineAArch64;
#else
  return kMachineX86_64;
#endif
}

const char* machine_name(uint32_t machine) {
  return machine == kMachineX86_64 ? "x86_64" : machine == kMachineAArch64 ? "aarch64" : "unknown";
}

Result<std::vector<DeviceEntry>> parse_device_list(const std::string& text) {
  std::vector<DeviceEntry> entries;
  if (trimmed(text) == "none") return entries;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    if (word.empty()) continue;
    auto entry = parse_entry(word);
    if (!entry.ok()) return entry.status();
    const bool twice = std::any_of(entries.begin(), entries.end(),
                                   [&](const DeviceEntry& other) { return other.name == entry->name; });
    if (twice) return bad(word, "another device has this name");
    entries.push_back(std::move(entry.value()));
  }
  return entries;
}

Result<std::vector<DeviceEntry>> configured_devices() {
  const std::string given = Environment::text("OFFPATH_DEVICES");
  if (!given.empty()) return parse_device_list(given);
  const std::string path = Environment::text("OFFPATH_DEVICES_FILE");
  if (path.empty()) {
    const auto dpus = session::own_dpus();
    if (!dpus.ok()) return dpus.status();
    auto devices = devices_of(dpus.value());
    return devices.ok() && devices->empty() ? parse_device_list("local") : std::move(devices);
  }
  std::ifstream file(path);
  if (!file) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "cannot read the list of devices %.100s. Correct OFFPATH_DEVICES_FILE",
                         path.c_str());
  }
  std::string list;
  for (std::string line; std::getline(file, line);) list += line.substr(0, line.find('#')) + ",";
  return parse_device_list(list);
}

}  // namespace offpath::device
