// SPDX-License-Identifier: BSD-3-Clause
// Kernel: computation on arrays in this process, cut into blocks so that whoever runs it can do something else between
// two of them, and others can help. Where a block ends, and in which order what the blocks find is put together,
// depends on the kernel alone: results do not depend on who runs what when.
//
//   begin   once, before any block
//   run     each block once, in any order, on any threads at the same time
//   end     once, after all blocks
//
// The arrays may be shared with a process that changes them meanwhile, to anything: results are garbage then, but every
// access stays inside the arrays.
//
// Adding a kernel: a class like this, a statement in ops/programs that makes one.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <span>

namespace offpath::kernels {

// Those that the kernel's maker said, as long and aligned as it said.
using Arrays = std::span<uint8_t* const>;

class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  virtual uint64_t blocks() const = 0;  // > 0
  // Bytes that a block moves to and from memory, about.
  virtual uint64_t block_bytes() const = 0;
  virtual base::Status begin(Arrays) { return {}; }
  virtual void run(uint64_t block, Arrays arrays) = 0;
  virtual void end(Arrays) {}
};

// All of it on this thread.
inline base::Status run_alone(Kernel& kernel, Arrays arrays) {
  const base::Status status = kernel.begin(arrays);
  if (!status.ok()) return status;
  for (uint64_t block = 0; block < kernel.blocks(); ++block) kernel.run(block, arrays);
  kernel.end(arrays);
  return {};
}

}  // namespace offpath::kernels
