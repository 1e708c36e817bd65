// SPDX-License-Identifier: BSD-3-Clause
#include "memory/memory.hpp"

#include <cstring>

namespace offpath::memory {
namespace {

class DirectMemory : public Memory {
 public:
  base::Status read(void* to, uint64_t address, size_t bytes) const override {
    memmove(to, reinterpret_cast<const void*>(address), bytes);
    return {};
  }
  base::Status write(uint64_t address, const void* from, size_t bytes) const override {
    memmove(reinterpret_cast<void*>(address), from, bytes);
    return {};
  }
  uint8_t* view(uint64_t address, size_t) const override { return reinterpret_cast<uint8_t*>(address); }
};

}  // namespace

std::unique_ptr<Memory> make_direct() { return std::make_unique<DirectMemory>(); }

}  // namespace offpath::memory
