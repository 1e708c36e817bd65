// SPDX-License-Identifier: BSD-3-Clause
// Doer: what reduces for an engine, and where partial results lie meanwhile. By default the kernels, on the worker's
// thread, and memory of the service; the planner has one that takes virtual time instead (model/). Called by the engine.
#pragma once

#include "kernels/reduce.hpp"
#include "memory/port.hpp"

#include <memory>

namespace offpath::engine {

class Doer {
 public:
  virtual ~Doer() = default;
  // Memory of an operation, with at least so many bytes of any content from address 0 on; null when there is none.
  virtual std::shared_ptr<memory::Port> scratch(uint64_t bytes) = 0;
  // result = left ∘ right, in memory that ports show in place or in buffers of the engine.
  virtual void combine(const kernels::Reduction& reduction, const uint8_t* left, const uint8_t* right, uint8_t* result,
                       size_t bytes) = 0;
};

// Keeps at most that much scratch memory for the next operation.
std::unique_ptr<Doer> make_doer(uint64_t cached_bytes);

}  // namespace offpath::engine
