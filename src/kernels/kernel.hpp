// SPDX-License-Identifier: BSD-3-Clause
// Kernel: computation on arrays in this process, cut into blocks so that whoever runs it can do something else between
// two of them. Blocks are run in order, each once. Where a block ends depends on the kernel alone, so results do not
// depend on who runs it when.
//
// The arrays may be shared with a process that changes them meanwhile, to anything: results are garbage then, but every
// access stays inside the arrays.
//
// Threads: one at a time. Adding a kernel: a class like this, a statement in ops/programs that makes one.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <span>

namespace offpath::kernels {

class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  virtual uint64_t blocks() const = 0;  // > 0
  // Bytes that a block moves to and from memory, about.
  virtual uint64_t block_bytes() const = 0;
  // The arrays are those that the kernel's maker said, as long and aligned as it said.
  virtual base::Status run(uint64_t block, std::span<uint8_t* const> arrays) = 0;
};

}  // namespace offpath::kernels
