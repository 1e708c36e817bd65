// SPDX-License-Identifier: BSD-3-Clause
// Arrivals: which chunks of a task are here. The own part is from the beginning. Pure.
#pragma once

#include "multicast/shape.hpp"

namespace offpath::multicast {

enum class Arrival : uint8_t {
  fresh,   // put it where it belongs
  known,   // is here, may be in use: not to be written again
  foreign  // no chunk of this task
};

class Arrivals {
 public:
  Arrivals(Shape shape, uint32_t own);

  const Shape& shape() const { return shape_; }
  Arrival look(uint32_t chunk) const;
  // Has come and was put where it belongs; known ones are passed over.
  void note(const Chunks& run);
  bool has(uint32_t node) const { return missing_[node] == 0; }
  bool complete() const { return missing_all_ == 0; }
  uint32_t missing() const { return missing_all_; }
  uint32_t missing(uint32_t node) const { return missing_[node]; }
  // The first run of missing chunks of that part that begins at `from` or behind it; of no more than `most`. Count 0: none.
  Chunks gap(uint32_t node, uint32_t from, uint32_t most) const;

 private:
  bool is_here(uint32_t chunk) const { return (here_[chunk / 64] >> (chunk % 64) & 1) != 0; }

  Shape shape_;
  std::vector<uint64_t> here_;     // a bit per chunk
  std::vector<uint32_t> missing_;  // by node
  uint32_t missing_all_ = 0;
};

}  // namespace offpath::multicast
