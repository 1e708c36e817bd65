// SPDX-License-Identifier: BSD-3-Clause
#include "memory/port.hpp"

#include <cstring>

namespace offpath::memory {
namespace {

class DirectPort : public Port {
 public:
  Outcome read(void* to, uint64_t address, size_t bytes, Ticket) const override {
    memmove(to, reinterpret_cast<const void*>(address), bytes);
    return {};
  }
  Outcome write(uint64_t address, const void* from, size_t bytes, Ticket) const override {
    memmove(reinterpret_cast<void*>(address), from, bytes);
    return {};
  }
  uint8_t* view(uint64_t address, size_t) const override { return reinterpret_cast<uint8_t*>(address); }
};

}  // namespace

std::unique_ptr<Port> make_direct() { return std::make_unique<DirectPort>(); }

}  // namespace offpath::memory
