// SPDX-License-Identifier: BSD-3-Clause
#include "multicast/arrivals.hpp"

#include <bit>

namespace offpath::multicast {

Arrivals::Arrivals(Shape shape, uint32_t own) : shape_(std::move(shape)), here_((shape_.chunks() + 63) / 64) {
  for (uint32_t node = 0; node < shape_.nodes(); ++node) {
    missing_.push_back(shape_.part(node).count);
    missing_all_ += missing_.back();
  }
  note(shape_.part(own));
}

Arrival Arrivals::look(uint32_t chunk) const {
  if (chunk >= shape_.chunks()) return Arrival::foreign;
  return is_here(chunk) ? Arrival::known : Arrival::fresh;
}

void Arrivals::note(const Chunks& run) {
  for (uint32_t chunk = run.first; chunk < run.first + run.count; ++chunk) {
    if (look(chunk) != Arrival::fresh) continue;
    here_[chunk / 64] |= uint64_t{1} << (chunk % 64);
    --missing_[shape_.owner(chunk)];
    --missing_all_;
  }
}

Chunks Arrivals::gap(uint32_t node, uint32_t from, uint32_t most) const {
  const Chunks part = shape_.part(node);
  const uint32_t end = part.first + part.count;
  uint32_t first = std::max(from, part.first);
  while (first < end && is_here(first)) {  // by whole words where nothing is missing
    first += static_cast<uint32_t>(std::countr_one(here_[first / 64] >> (first % 64)));
  }
  if (first >= end) return {};
  Chunks gap{first, 1};
  while (gap.count < most && first + gap.count < end && !is_here(first + gap.count)) ++gap.count;
  return gap;
}

}  // namespace offpath::multicast
