// SPDX-License-Identifier: BSD-3-Clause
#include "memory/port.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace offpath::memory {
namespace {

using base::Status;

class CmaPort : public RangedPort {
 public:
  explicit CmaPort(pid_t process) : process_(process) {}

  Outcome gather(void* to, std::span<const Range> ranges, Ticket) const override {
    return transfer(process_vm_readv, to, ranges, "read");
  }
  Outcome scatter(std::span<const Range> ranges, const void* from, Ticket) const override {
    return transfer(process_vm_writev, const_cast<void*>(from), ranges, "write");
  }

 private:
  template <typename Call>
  Status transfer(Call call, void* local, std::span<const Range> ranges, const char* verb) const {
    auto* at = static_cast<uint8_t*>(local);
    uint64_t done = 0;  // of the first range
    while (!ranges.empty()) {
      if (done == ranges.front().bytes) {
        ranges = ranges.subspan(1);
        done = 0;
        continue;
      }
      iovec there[IOV_MAX];
      const size_t count = std::min<size_t>(ranges.size(), IOV_MAX);
      size_t bytes = 0;
      for (size_t i = 0; i < count; ++i) {
        const uint64_t skip = i == 0 ? done : 0;
        there[i] = {reinterpret_cast<void*>(static_cast<uint64_t>(ranges[i].offset) + skip), ranges[i].bytes - skip};
        bytes += there[i].iov_len;
      }
      const iovec here{at, bytes};
      const ssize_t got = call(process_, &here, 1, there, count, 0);
      if (got <= 0) return failure(got == 0 ? EFAULT : errno, verb, bytes, there[0].iov_base);
      at += got;
      // The kernel may stop anywhere.
      for (done += static_cast<uint64_t>(got); done > ranges.front().bytes; ranges = ranges.subspan(1)) {
        done -= ranges.front().bytes;
      }
    }
    return {};
  }

  Status failure(int error, const char* verb, size_t bytes, const void* address) const {
    if (error == EPERM) {
      return Status::system_error(OFFPATH_ERR_PERMISSION, error,
                                  "the service may not %s the memory of process %d "
                                  "(ptrace is restricted). Allow it with kernel.yama.ptrace_scope=0 or 1, or "
                                  "CAP_SYS_PTRACE in containers",
                                  verb, process_);
    }
    if (error == ESRCH) return Status::error(OFFPATH_ERR_PEER_LOST, "process %d is gone", process_);
    return Status::system_error(OFFPATH_ERR_MEMORY_FAULT, error, "cannot %s %zu bytes at %p of process %d", verb, bytes,
                                address, process_);
  }

  pid_t process_;
};

}  // namespace

std::unique_ptr<Port> make_cma(pid_t process) { return std::make_unique<CmaPort>(process); }

}  // namespace offpath::memory
