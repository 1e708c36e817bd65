// SPDX-License-Identifier: BSD-3-Clause
#include "memory/memory.hpp"

#include <sys/uio.h>

#include <cerrno>

namespace offpath::memory {
namespace {

using base::Status;

class CmaMemory : public Memory {
 public:
  explicit CmaMemory(pid_t process) : process_(process) {}

  Status read(void* to, uint64_t address, size_t bytes) const override {
    return transfer(process_vm_readv, to, address, bytes, "read");
  }
  Status write(uint64_t address, const void* from, size_t bytes) const override {
    return transfer(process_vm_writev, const_cast<void*>(from), address, bytes, "write");
  }

 private:
  template <typename Call>
  Status transfer(Call call, void* local, uint64_t address, size_t bytes, const char* verb) const {
    size_t moved = 0;
    while (moved < bytes) {
      iovec here{static_cast<char*>(local) + moved, bytes - moved};
      iovec there{reinterpret_cast<void*>(address + moved), bytes - moved};
      const ssize_t got = call(process_, &here, 1, &there, 1, 0);
      if (got < 0 && errno == EPERM) {
        return Status::system_error(OFFPATH_ERR_PERMISSION, errno,
                                    "the service may not %s the memory of process %d "
                                    "(ptrace is restricted). Allow it with kernel.yama.ptrace_scope=0 or 1, or "
                                    "CAP_SYS_PTRACE in containers",
                                    verb, process_);
      }
      if (got < 0 && errno == ESRCH) {
        return Status::error(OFFPATH_ERR_PEER_LOST, "process %d is gone", process_);
      }
      if (got <= 0) {
        return Status::system_error(OFFPATH_ERR_MEMORY_FAULT, errno, "cannot %s %zu bytes at 0x%llx of process %d",
                                    verb, bytes, static_cast<unsigned long long>(address), process_);
      }
      moved += static_cast<size_t>(got);
    }
    return {};
  }

  pid_t process_;
};

}  // namespace

uint8_t* Memory::view(uint64_t, size_t) const { return nullptr; }

std::unique_ptr<Memory> make_cma(pid_t process) { return std::make_unique<CmaMemory>(process); }

}  // namespace offpath::memory
