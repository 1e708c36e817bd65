// SPDX-License-Identifier: BSD-3-Clause
#include "memory/aliases.hpp"
#include "memory/join.hpp"
#include "memory/port.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace offpath::memory {
namespace {

uint64_t total(std::span<const Range> ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), uint64_t{0},
                         [](uint64_t sum, const Range& range) { return sum + range.bytes; });
}

class Nothing : public Port {
 public:
  Outcome read(void*, uint64_t address, size_t bytes, Ticket) const override { return refused(address, bytes); }
  Outcome write(uint64_t address, const void*, size_t bytes, Ticket) const override { return refused(address, bytes); }

 private:
  static base::Status refused(uint64_t address, size_t bytes) {
    return base::Status::error(OFFPATH_ERR_MEMORY_FAULT, "%zu bytes at %#llx lie outside the shared memory", bytes,
                               static_cast<unsigned long long>(address));
  }
};

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
  Outcome gather(void* to, std::span<const Range> ranges, Ticket ticket) const override {
    auto* const here = static_cast<uint8_t*>(to);
    return in_pieces(
        ranges, ticket, [&](uint64_t at, const uint8_t* place, size_t count) { memmove(here + at, place, count); },
        [&](uint64_t at, std::span<const Range> part, Ticket t) { return rest_->gather(here + at, part, t); });
  }
  Outcome scatter(std::span<const Range> ranges, const void* from, Ticket ticket) const override {
    const auto* const here = static_cast<const uint8_t*>(from);
    return in_pieces(
        ranges, ticket, [&](uint64_t at, uint8_t* place, size_t count) { memmove(place, here + at, count); },
        [&](uint64_t at, std::span<const Range> part, Ticket t) { return rest_->scatter(part, here + at, t); });
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
    const bool inside = address >= region_.address && offset < region_.bytes;
    return inside ? Aliases::Found{offset, std::min(bytes, region_.bytes - offset)} : aliases_->find(address, bytes);
  }

  // From the lowest byte of the ranges to the one behind the highest. Nothing: they leave the address space.
  static std::optional<std::pair<uint64_t, uint64_t>> bounds(std::span<const Range> ranges) {
    uint64_t low = UINT64_MAX, high = 0;
    for (const Range& range : ranges) {
      const auto begin = static_cast<uint64_t>(range.offset);
      if (range.bytes > UINT64_MAX - begin) return std::nullopt;
      low = std::min(low, begin);
      high = std::max(high, begin + range.bytes);
    }
    return std::pair(low, high);
  }

  // What lies in the region piece by piece, what is between at once: many short ranges cost the kernel less than one call each.
  template <typename InPlace, typename Rest>
  Outcome in_pieces(std::span<const Range> ranges, Ticket ticket, InPlace in_place, Rest rest) const {
    const auto hull = bounds(ranges);
    if (!hull || ranges.empty()) return rest(0, ranges, ticket);
    const auto [low, high] = *hull;
    uint64_t known_from = low;
    Aliases::Found known = find(low, high - low);  // from there on
    if (!known.offset && known.bytes == high - low) {
      aliases_->count_copied(total(ranges));
      return rest(0, ranges, ticket);
    }
    if (known.offset && known.bytes == high - low) {
      uint64_t at = 0;
      for (const Range& range : ranges) {
        in_place(at, region_.data + *known.offset + (static_cast<uint64_t>(range.offset) - low), range.bytes);
        at += range.bytes;
      }
      aliases_->count_in_place(at);
      return {};
    }
    Join join(ticket);
    std::vector<Range> left;  // behind `left_at`
    uint64_t at = 0, left_at = 0, used_in_place = 0;
    const auto do_left = [&] {
      const bool goes_on = left.empty() || join.add(rest(left_at, left, join.next()));
      aliases_->count_copied(total(left));
      left.clear();
      return goes_on;
    };
    for (const Range& range : ranges) {
      for (uint64_t done = 0, bytes = 0; done < range.bytes; done += bytes, at += bytes) {
        const uint64_t address = static_cast<uint64_t>(range.offset) + done;
        if (address - known_from >= known.bytes) known_from = address, known = find(address, high - address);
        bytes = std::min(range.bytes - done, known.bytes - (address - known_from));
        if (!known.offset) {
          if (left.empty()) left_at = at;
          left.push_back({static_cast<int64_t>(address), bytes});
          continue;
        }
        if (!do_left()) return join.end();
        in_place(at, region_.data + *known.offset + (address - known_from), bytes);
        used_in_place += bytes;
      }
    }
    aliases_->count_in_place(used_in_place);
    do_left();
    return join.end();
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
  if (rest == nullptr) rest = std::make_unique<Nothing>();
  if (aliases == nullptr) aliases = std::make_shared<Aliases>();
  return std::make_unique<MappedPort>(region, std::move(rest), std::move(aliases));
}

}  // namespace offpath::memory
