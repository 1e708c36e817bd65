// SPDX-License-Identifier: BSD-3-Clause
// The list of devices: OFFPATH_DEVICES, or the file named by OFFPATH_DEVICES_FILE (one entry a line, # comments), or
// this node's DPUs (session/dpus.hpp), or by default one software DPU of this node. Its order is the order of device numbers. Pure.
//
//   entry    [NAME=]local | [NAME=]HOST:PORT[/ARCH]       ARCH: x86_64 or aarch64 (default for HOST:PORT)
//   list     entries separated by commas; "none": no device
//
// A program numbers only the devices whose architecture one of its images has (see docs/guide-openmp.md).
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace offpath::device {

inline constexpr uint32_t kMachineX86_64 = 62;
inline constexpr uint32_t kMachineAArch64 = 183;
// e_machine of this build.
uint32_t own_machine();
const char* machine_name(uint32_t machine);

struct DeviceEntry {
  std::string name;     // given, or the address
  std::string address;  // "local" or HOST:PORT
  std::string host;     // empty: local
  uint16_t port = 0;
  uint32_t machine = 0;  // e_machine that is expected there
  bool local() const { return host.empty(); }
};

// HOST:PORT or [HOST]:PORT into the entry. What is wrong with it, or null.
const char* parse_address(const std::string& text, DeviceEntry& entry);
// Errors name the entry and say what is wrong with it.
base::Result<std::vector<DeviceEntry>> parse_device_list(const std::string& text);
// The list this process shall use.
base::Result<std::vector<DeviceEntry>> configured_devices();

}  // namespace offpath::device
