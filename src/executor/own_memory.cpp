// SPDX-License-Identifier: BSD-3-Clause
#include "executor/own_memory.hpp"

#include "base/fd.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace offpath::executor {

using base::Status;

namespace {
constexpr uint64_t kPart = 1 << 30;

// The system copies, so a bad address at either end is an error number. Emulators lack the first call.
ssize_t copy_part(uint64_t to, uint64_t from, uint64_t bytes) {
  const iovec target{reinterpret_cast<void*>(to), bytes};
  const iovec source{reinterpret_cast<void*>(from), bytes};
  const ssize_t copied = process_vm_readv(getpid(), &target, 1, &source, 1, 0);
  if (copied >= 0 || (errno != ENOSYS && errno != EPERM)) return copied;
  static const base::Fd memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  return pread(memory.get(), reinterpret_cast<void*>(to), bytes, static_cast<off_t>(from));
}
}  // namespace

Status copy_checked(uint64_t to, uint64_t from, uint64_t bytes) {
  while (bytes > 0) {
    const ssize_t copied = copy_part(to, from, std::min(bytes, kPart));
    if (copied <= 0) {
      return Status::error(OFFPATH_ERR_MEMORY_FAULT,
                           "cannot copy %llu bytes from 0x%llx to 0x%llx (one of them is no memory of the device)",
                           static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(from),
                           static_cast<unsigned long long>(to));
    }
    to += static_cast<uint64_t>(copied);
    from += static_cast<uint64_t>(copied);
    bytes -= static_cast<uint64_t>(copied);
  }
  return {};
}

}  // namespace offpath::executor
