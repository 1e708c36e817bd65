// SPDX-License-Identifier: BSD-3-Clause
// Who multiplies a rank's tiles: the rank itself, or the executors of its service.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace bspmm {

class Multiplier {
 public:
  virtual ~Multiplier() = default;
  // Memory for tiles, as long as this lives.
  virtual double* allocate(std::size_t elements) = 0;
  // C += A B; C holds nothing yet if it is the first product. One at a time: the tiles are its own until end().
  virtual void begin(const double* a, const double* b, double* c, bool first) = 0;
  // Returns the seconds that multiplying took on its core.
  virtual double end() = 0;
  // The rank has time for something else between begin() and end().
  virtual bool elsewhere() const = 0;
};

std::unique_ptr<Multiplier> make_own(int tile);
// On all ranks. What this program was built with. Null, and the problem as one line for the user, where it cannot serve.
std::unique_ptr<Multiplier> make_tasks(int tile, std::string& problem);

}  // namespace bspmm
