// SPDX-License-Identifier: BSD-3-Clause
#include "openmp/devices.hpp"

#include "base/environment.hpp"
#include "base/standard_descriptors.hpp"
#include "client/launcher.hpp"
#include "device/connect.hpp"
#include "device/device_code.hpp"
#include "device/handover.hpp"
#include "session/link.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

namespace offpath::openmp {

using base::Environment;
using base::Result;
using base::Status;
using device::Device;
using device::DeviceEntry;

namespace {

template <typename Function>
Function find_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

Device::Options options_for(const DeviceEntry& entry, int number) {
  Device::Options options;
  options.name = entry.name;
  options.number = number;
  options.timeout_ms = static_cast<int>(Environment::number("OFFPATH_DEVICE_TIMEOUT_MS", 10000, 1, 600000));
  options.serve_upcall = find_function<decltype(options.serve_upcall)>("offpath_serve_upcall");
  options.channel_lost = find_function<decltype(options.channel_lost)>("offpath_upcall_channel_lost");
  return options;
}

// Programs of a user take turns, so that only one of them starts the service; one that ends meanwhile is started again.
Result<std::unique_ptr<Device>> open_local(const Device::Options& options) {
  const auto folder = session::runtime_folder();
  if (!folder.ok()) return folder.status();
  const auto path = device::device_socket_path();
  if (!path.ok()) return path.status();
  const auto lock = session::lock_folder(folder.value(), options.timeout_ms);
  if (!lock.ok()) return lock.status();
  Status status;
  for (int attempt = 0; attempt < 4; ++attempt) {
    auto socket = device::connect_local(path.value());
    if (socket.ok()) {
      auto opened = Device::open(std::move(socket.value()), options);
      if (opened.ok() || opened.status().code() != OFFPATH_ERR_SERVICE_LOST) return opened;
      status = opened.status();
      continue;
    }
    status = socket.status();
    if (status.code() != OFFPATH_ERR_NO_SERVICE) return status;
    unlink(path.value().c_str());
    if (const Status started = client::start_device_service(path.value()); !started.ok()) return started;
  }
  return Status::error(OFFPATH_ERR_NO_SERVICE,
                       "the device service ends as soon as it is started (%.120s). OFFPATH_SERVICE_LOG=FILE keeps its "
                       "last words",
                       status.text());
}

Result<std::unique_ptr<Device>> open_remote(const DeviceEntry& entry, const Device::Options& options) {
  const std::string path = Environment::text("OFFPATH_DEVICE_KEY_FILE");
  if (path.empty()) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "no key for it. Name the key file of its service in OFFPATH_DEVICE_KEY_FILE");
  }
  const auto key = device::read_key(path);
  if (!key.ok()) return key.status();
  auto socket = device::connect_remote(entry, key.value(), options.timeout_ms);
  if (!socket.ok()) return socket.status();
  auto opened = Device::open(std::move(socket.value()), options);
  if (!opened.ok() && opened.status().code() == OFFPATH_ERR_SERVICE_LOST) {
    // Not another key: the service has just proven that it has this one.
    return Status::error(
        OFFPATH_ERR_NO_SERVICE,
        "its service closed the connection before a region could run (is its machine overloaded?). Try "
        "again; the service's log says why");
  }
  return opened;
}

// Where none of `entries` can run the program's regions libomptarget would not say a word.
Status no_device_for(uint32_t machine, const std::vector<DeviceEntry>& entries) {
  const auto program = device::FileBytes::of("/proc/self/exe");
  if (!program || device::device_code_in(program->get(), machine).empty()) return {};
  for (const DeviceEntry& entry : entries) {
    if (entry.machine == machine || !device::device_code_in(program->get(), entry.machine).empty()) return {};
  }
  const char* const name = device::machine_name(machine);
  return Status::error(
      OFFPATH_ERR_NO_SERVICE,
      "there is no device for %s (this program's target regions are for no other processor, so they run "
      "on the host). Name one in OFFPATH_DEVICES, or compile for the others, too",
      name);
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const DeviceEntry& entry, int number) {
  const Device::Options options = options_for(entry, number);
  auto opened = entry.local() ? open_local(options) : open_remote(entry, options);
  Status status = opened.status();
  if (opened.ok() && opened.value()->description().machine != entry.machine) {
    status =
        Status::error(OFFPATH_ERR_ARGUMENT, "its architecture is %s, not %s. Correct the list of devices",
                      device::machine_name(opened.value()->description().machine), device::machine_name(entry.machine));
  }
  if (status.ok()) return opened;
  return Status::error(status.code(), "device %d (%.60s): %.170s", number, entry.name.c_str(), status.text());
}

Devices::Devices(uint32_t machine) {
  const auto list = device::configured_devices();
  if (!list.ok()) {
    say(list.status());
    return;
  }
  std::vector<std::unique_ptr<Slot>> slots;
  for (const DeviceEntry& entry : list.value()) {
    if (entry.machine != machine) continue;
    slots.push_back(std::make_unique<Slot>());
    slots.back()->entry = entry;
  }
  if (slots.empty() && !list.value().empty()) {
    if (const Status missing = no_device_for(machine, list.value()); !missing.ok()) say(missing);
  }
  const base::StandardDescriptors standard;
  std::vector<std::thread> openers;
  std::vector<Status> states(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i]->entry.local()) continue;
    openers.emplace_back([&, i] {
      auto opened = open_device(slots[i]->entry, static_cast<int>(i));
      states[i] = opened.status();
      if (opened.ok()) slots[i]->device = opened.value().release();
    });
  }
  for (std::thread& opener : openers) opener.join();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (states[i].ok()) {
      slots_.push_back(std::move(slots[i]));
    } else {
      say(states[i]);
    }
  }
}

Result<Device*> Devices::get(size_t number) {
  if (number >= slots_.size()) return Status::error(OFFPATH_ERR_ARGUMENT, "there is no device %zu", number);
  Slot& slot = *slots_[number];
  slot.used = true;
  const std::lock_guard lock(mutex_);
  const base::StandardDescriptors standard;
  const int program_number = first_ + static_cast<int>(number);
  if (slot.device == nullptr) {
    auto opened = open_device(slot.entry, program_number);
    if (!opened.ok()) return opened.status();
    slot.device = opened.value().release();
  }
  slot.device.load()->set_number(program_number);
  return slot.device.load();
}

void Devices::leave_to_parent() {
  for (const auto& slot : slots_) {
    Device* const device = slot->device;
    if (device == nullptr) continue;
    device->leave_to_parent();
    if (!slot->used) slot->device = nullptr;
  }
}

Device* Devices::opened(size_t number) const {
  return number < slots_.size() ? slots_[number]->device.load() : nullptr;
}

void say(const Status& status) { fprintf(stderr, "offpath: %s\n", status.text()); }

}  // namespace offpath::openmp
