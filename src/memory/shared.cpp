// SPDX-License-Identifier: BSD-3-Clause
#include "memory/memory.hpp"

#include <cstring>

namespace offpath::memory {
namespace {

using base::Status;

class SharedMemory : public Memory {
 public:
  SharedMemory(const Region& region, std::unique_ptr<Memory> rest) : region_(region), rest_(std::move(rest)) {}

  Status read(void* to, uint64_t address, size_t bytes) const override {
    const uint8_t* here = view(address, bytes);
    if (here == nullptr) return rest_->read(to, address, bytes);
    memmove(to, here, bytes);
    return {};
  }
  Status write(uint64_t address, const void* from, size_t bytes) const override {
    uint8_t* here = view(address, bytes);
    if (here == nullptr) return rest_->write(address, from, bytes);
    memmove(here, from, bytes);
    return {};
  }
  // Many short ranges cost the kernel less than one call each costs us, wherever they lie.
  Status gather(void* to, std::span<const Range> ranges) const override { return rest_->gather(to, ranges); }
  Status scatter(std::span<const Range> ranges, const void* from) const override {
    return rest_->scatter(ranges, from);
  }
  uint8_t* view(uint64_t address, size_t bytes) const override {
    const uint64_t offset = address - region_.address;
    const bool inside = address >= region_.address && offset <= region_.bytes && bytes <= region_.bytes - offset;
    return inside ? region_.data + offset : nullptr;
  }

 private:
  Region region_;
  std::unique_ptr<Memory> rest_;
};

}  // namespace

std::unique_ptr<Memory> make_shared_region(const Region& region, std::unique_ptr<Memory> rest) {
  return std::make_unique<SharedMemory>(region, std::move(rest));
}

}  // namespace offpath::memory
