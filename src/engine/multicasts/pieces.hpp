// SPDX-License-Identifier: BSD-3-Clause
// Pieces: memory that lies in several places, seen as one. An access lies within one of them: reach() says how far that goes.
// Internal to engine/.
#pragma once

#include "engine/blocks/block.hpp"

#include <algorithm>

namespace offpath::engine {

class Pieces : public memory::Port {
 public:
  void add(Location place, uint64_t bytes) {
    if (bytes == 0) return;
    begin_.push_back(bytes_);
    places_.push_back(std::move(place));
    bytes_ += bytes;
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t reach(uint64_t address, uint64_t bytes) const {
    const size_t i = index(address);
    const uint64_t end = i + 1 < begin_.size() ? begin_[i + 1] : bytes_;
    return address < end ? std::min(bytes, end - address) : 0;
  }

  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket ticket) const override {
    if (!fits(address, bytes)) return outside();
    return places_[index(address)].memory->read(to, at(address), bytes, ticket);
  }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket ticket) const override {
    if (!fits(address, bytes)) return outside();
    return places_[index(address)].memory->write(at(address), from, bytes, ticket);
  }
  bool prompt() const override {
    return std::all_of(places_.begin(), places_.end(), [](const Location& place) { return place.memory->prompt(); });
  }
  uint8_t* view(uint64_t address, size_t bytes) const override {
    return fits(address, bytes) ? places_[index(address)].memory->view(at(address), bytes) : nullptr;
  }
  size_t alike(uint64_t address, size_t bytes) const override {
    const uint64_t within = reach(address, bytes);
    return within == 0 ? bytes : places_[index(address)].memory->alike(at(address), within);
  }

 private:
  size_t index(uint64_t address) const {
    const auto behind = std::upper_bound(begin_.begin(), begin_.end(), address);
    return behind == begin_.begin() ? 0 : static_cast<size_t>(behind - begin_.begin()) - 1;
  }
  uint64_t at(uint64_t address) const { return places_[index(address)].address + (address - begin_[index(address)]); }
  bool fits(uint64_t address, uint64_t bytes) const { return bytes > 0 && reach(address, bytes) == bytes; }
  static base::Status outside() {
    return base::Status::error(OFFPATH_ERR_MEMORY_FAULT, "an access across the pieces of a part");
  }

  std::vector<uint64_t> begin_;
  std::vector<Location> places_;
  uint64_t bytes_ = 0;
};

}  // namespace offpath::engine
