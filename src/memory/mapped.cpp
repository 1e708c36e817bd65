// SPDX-License-Identifier: BSD-3-Clause
#include "memory/aliases.hpp"
#include "memory/join.hpp"
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
    auto* const here = static_cast<uint8_t*>(to);
    return in_parts(
        address, bytes, ticket,
        [&](size_t at, const uint8_t* place, size_t count) { memmove(here + at, place, count); },
        [&](size_t at, size_t count, Ticket part) { return rest_->read(here + at, address + at, count, part); });
  }
  Outcome write(uint64_t address, const void* from, size_t bytes, Ticket ticket) const override {
    const auto* const here = static_cast<const uint8_t*>(from);
    return in_parts(
        address, bytes, ticket, [&](size_t at, uint8_t* place, size_t count) { memmove(place, here + at, count); },
        [&](size_t at, size_t count, Ticket part) { return rest_->write(address + at, here + at, count, part); });
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
    const Aliases::Found found = find(address, bytes);
    if (!found.offset || found.bytes < bytes) return nullptr;
    aliases_->count_in_place(bytes);
    return region_.data + *found.offset;
  }
  size_t alike(uint64_t address, size_t bytes) const override { return find(address, bytes).bytes; }

 private:
  Aliases::Found find(uint64_t address, uint64_t bytes) const {
    const uint64_t offset = address - region_.address;
    const bool inside = address >= region_.address && offset <= region_.bytes && bytes <= region_.bytes - offset;
    return inside ? Aliases::Found{offset, bytes} : aliases_->find(address, bytes);
  }

  template <typename InPlace, typename Rest>
  Outcome in_parts(uint64_t address, size_t bytes, Ticket ticket, InPlace in_place, Rest rest) const {
    const auto place = [&](size_t at, const Aliases::Found& found) {
      if (!found.offset) return false;
      aliases_->count_in_place(found.bytes);
      in_place(at, region_.data + *found.offset, found.bytes);
      return true;
    };
    const Aliases::Found first = find(address, bytes);
    if (first.bytes == bytes) {
      if (place(0, first)) return {};
      aliases_->count_copied(bytes);
      return rest(0, bytes, ticket);
    }
    Join join(ticket);
    for (size_t at = 0; at < bytes;) {
      const Aliases::Found found = find(address + at, bytes - at);
      if (!place(at, found)) {
        aliases_->count_copied(found.bytes);
        if (!join.add(rest(at, found.bytes, join.next()))) break;
      }
      at += found.bytes;
    }
    return join.end();
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
