// SPDX-License-Identifier: BSD-3-Clause
// Walls: this process's memory, of which the first page is none.
#pragma once

#include "memory/port.hpp"

#include <memory>

namespace offpath::testing {

struct Walls : memory::Port {
  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket) const override {
    if (address < 4096) return base::Status::error(OFFPATH_ERR_MEMORY_FAULT, "no memory");
    return direct->read(to, address, bytes);
  }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket) const override {
    if (address < 4096) return base::Status::error(OFFPATH_ERR_MEMORY_FAULT, "no memory");
    return direct->write(address, from, bytes);
  }
  uint8_t* view(uint64_t address, size_t bytes) const override {
    return views ? direct->view(address, bytes) : nullptr;
  }
  std::unique_ptr<memory::Port> direct = memory::make_direct();
  bool views = false;
};

}  // namespace offpath::testing
