// SPDX-License-Identifier: BSD-3-Clause
#include "memory/port.hpp"

#include <cstring>

namespace offpath::memory {
namespace {

class MappedPort : public Port {
 public:
  MappedPort(const Region& region, std::unique_ptr<Port> rest) : region_(region), rest_(std::move(rest)) {}

  Outcome read(void* to, uint64_t address, size_t bytes, Ticket ticket) const override {
    const uint8_t* here = view(address, bytes);
    if (here == nullptr) return rest_->read(to, address, bytes, ticket);
    memmove(to, here, bytes);
    return {};
  }
  Outcome write(uint64_t address, const void* from, size_t bytes, Ticket ticket) const override {
    uint8_t* here = view(address, bytes);
    if (here == nullptr) return rest_->write(address, from, bytes, ticket);
    memmove(here, from, bytes);
    return {};
  }
  // Many short ranges cost the kernel less than one call each costs us, wherever they lie.
  Outcome gather(void* to, std::span<const Range> ranges, Ticket ticket) const override {
    return rest_->gather(to, ranges, ticket);
  }
  Outcome scatter(std::span<const Range> ranges, const void* from, Ticket ticket) const override {
    return rest_->scatter(ranges, from, ticket);
  }
  bool prompt() const override { return rest_->prompt(); }
  uint8_t* view(uint64_t address, size_t bytes) const override {
    const uint64_t offset = address - region_.address;
    const bool inside = address >= region_.address && offset <= region_.bytes && bytes <= region_.bytes - offset;
    return inside ? region_.data + offset : nullptr;
  }

 private:
  Region region_;
  std::unique_ptr<Port> rest_;
};

}  // namespace

std::unique_ptr<Port> make_mapped(const Region& region, std::unique_ptr<Port> rest) {
  return std::make_unique<MappedPort>(region, std::move(rest));
}

}  // namespace offpath::memory
