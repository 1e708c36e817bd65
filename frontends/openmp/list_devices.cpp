// SPDX-License-Identifier: BSD-3-Clause
// offpath-devices: the devices that a program started here would have, as JSON, found by the plugin's own code. Opens
// each of them once, all at a time.
#include "openmp/devices.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <thread>

namespace {

using nlohmann::ordered_json;
using offpath::base::Result;
using offpath::device::Description;
using offpath::device::Device;
using offpath::device::DeviceEntry;

ordered_json row_of(const DeviceEntry& entry, const Result<std::unique_ptr<Device>>& opened) {
  ordered_json row = {{"number", nullptr},
                      {"name", entry.name},
                      {"kind", entry.local() ? "software" : "remote"},
                      {"architecture", offpath::device::machine_name(entry.machine)},
                      {"cores", nullptr},
                      {"memory_bytes", nullptr},
                      {"address", entry.address},
                      {"system", nullptr},
                      {"state", "down"},
                      {"limits", ordered_json::object()}};
  if (!opened.ok()) {
    row["problem"] = opened.status().text();
    return row;
  }
  const Description& description = opened.value()->description();
  row["kind"] = offpath::device::to_string(description.kind);
  row["cores"] = description.cores;
  row["memory_bytes"] = description.heap_bytes;
  row["system"] = description.system;
  row["state"] = "up";
  row["limits"] = {{"programs", description.max_clients}};
  return row;
}

}  // namespace

int main() {
  auto list = offpath::device::configured_devices();
  if (!list.ok()) {
    offpath::openmp::say(list.status());
    return 1;
  }
  std::vector<DeviceEntry>& entries = list.value();
  // As for a program whose code for x86_64 is the first.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const DeviceEntry& a, const DeviceEntry& b) { return a.machine < b.machine; });
  std::vector<ordered_json> rows(entries.size());
  std::vector<std::thread> openers;
  for (size_t i = 0; i < entries.size(); ++i) {
    openers.emplace_back(
        [&, i] { rows[i] = row_of(entries[i], offpath::openmp::open_device(entries[i], static_cast<int>(i))); });
  }
  for (std::thread& opener : openers) opener.join();
  int number = 0;
  for (ordered_json& row : rows) {
    if (row["state"] == "up") row["number"] = number++;
  }
  printf("%s\n", ordered_json(rows).dump(1).c_str());
  return 0;
}
