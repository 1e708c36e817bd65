// SPDX-License-Identifier: BSD-3-Clause
#include "memory/aliases.hpp"
#include "memory/port.hpp"

#include <cstring>
#include <numeric>

namespace offpath::memory {
namespace {

uint64_t total(std::span<const Range> ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), uint64_t{0},
                         [](uint64_t sum, const Range& range) { return sum + range.bytes; });
}

class MappedPort : public Port {
 public:
  MappedPort(const Region& region, std::unique_ptr<Port> rest, std::shared_ptr<Aliases> aliases)
      : region_(region), rest_(std::move(rest)), aliases_(std::move(aliases)) {}

  Outcome read(void* to, uint64_t address, size_t bytes, Ticket ticket) const override {
    const uint8_t* here = view(address, bytes);
    if (here == nullptr) return aliases_->count_copied(bytes), rest_->read(to, address, bytes, ticket);
    memmove(to, here, bytes);
    return {};
  }
  Outcome write(uint64_t address, const void* from, size_t bytes, Ticket ticket) const override {
    uint8_t* here = view(address, bytes);
    if (here == nullptr) return aliases_->count_copied(bytes), rest_->write(address, from, bytes, ticket);
    memmove(here, from, bytes);
    return {};
  }
  // Many short ranges cost the kernel less than one call each costs us, wherever they lie.
  Outcome gather(void* to, std::span<const Range> ranges, Ticket ticket) const override {
    aliases_->count_copied(total(ranges));
    return rest_->gather(to, ranges, ticket);
  }
  Outcome scatter(std::span<const Range> ranges, const void* from, Ticket ticket) const override {
    aliases_->count_copied(total(ranges));
    return rest_->scatter(ranges, from, ticket);
  }
  bool prompt() const override { return rest_->prompt(); }
  uint8_t* view(uint64_t address, size_t bytes) const override {
    const auto offset = find(address, bytes);
    if (!offset) return nullptr;
    aliases_->count_in_place(bytes);
    return region_.data + *offset;
  }

 private:
  std::optional<uint64_t> find(uint64_t address, uint64_t bytes) const {
    const uint64_t offset = address - region_.address;
    const bool inside = address >= region_.address && offset <= region_.bytes && bytes <= region_.bytes - offset;
    return inside ? offset : aliases_->find(address, bytes);
  }

  Region region_;
  std::unique_ptr<Port> rest_;
  std::shared_ptr<Aliases> aliases_;
};

}  // namespace

std::unique_ptr<Port> make_mapped(const Region& region, std::unique_ptr<Port> rest, std::shared_ptr<Aliases> aliases) {
  if (aliases == nullptr) aliases = std::make_shared<Aliases>();
  return std::make_unique<MappedPort>(region, std::move(rest), std::move(aliases));
}

}  // namespace offpath::memory
