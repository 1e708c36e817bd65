// SPDX-License-Identifier: BSD-3-Clause
// Memory: a client's memory as a service sees it. Addresses are the client's own. An access either succeeds whole or
// fails with OFFPATH_ERR_MEMORY_FAULT; it cannot crash the service.
//
// Adding a kind of access (another mapping, UCX get/put): one file here that implements this interface.
#pragma once

#include "base/result.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace offpath::memory {

class Memory {
 public:
  virtual ~Memory() = default;
  virtual base::Status read(void* to, uint64_t address, size_t bytes) const = 0;
  virtual base::Status write(uint64_t address, const void* from, size_t bytes) const = 0;
  // Where this process can use the client's bytes in place; null when it cannot, then read and write.
  virtual uint8_t* view(uint64_t address, size_t bytes) const;
};

// Cross-memory attach (process_vm_readv/writev): any address of a process of the same user. One copy each way by the
// kernel, 7 GB/s from 256 KiB on; needs the right to ptrace the process (notes in docs/architecture.md).
std::unique_ptr<Memory> make_cma(pid_t process);

// The caller's own memory: tests, and clients inside the service's process.
std::unique_ptr<Memory> make_direct();

}  // namespace offpath::memory
