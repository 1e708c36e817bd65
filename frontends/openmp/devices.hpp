// SPDX-License-Identifier: BSD-3-Clause
// The devices of one architecture that this process can use. Local ones are started when first used, remote ones are
// connected to when they are counted, all at once.
#pragma once

#include "device/device.hpp"
#include "device/device_list.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace offpath::openmp {

// Opens a connection to an executor of the entry and waits for its first word. Blocks within a time limit.
base::Result<std::unique_ptr<device::Device>> open_device(const device::DeviceEntry& entry, int number);

class Devices {
 public:
  // Entries of the configured list with this e_machine that answer; the others are reported, once.
  explicit Devices(uint32_t machine);

  size_t count() const { return slots_.size(); }
  // Of libomptarget's numbers the first that is one of these. Before any is used.
  void number_from(int first) { first_ = first; }
  // Opens it, if that has not happened.
  base::Result<device::Device*> get(size_t number);
  // In a child that fork has made: what is open belongs to the parent. What nobody has used yet, the child opens anew.
  void leave_to_parent();
  // Opened before; null otherwise.
  device::Device* opened(size_t number) const;
  const device::DeviceEntry& entry(size_t number) const { return slots_[number]->entry; }

 private:
  struct Slot {
    device::DeviceEntry entry;
    std::atomic<device::Device*> device{nullptr};  // never freed: regions may run until the process ends
    std::atomic<bool> used{false};
  };
  std::vector<std::unique_ptr<Slot>> slots_;
  std::mutex mutex_;  // of who opens one
  int first_ = 0;
};

// One line to the user.
void say(const base::Status& status);

}  // namespace offpath::openmp
