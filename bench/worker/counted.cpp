// SPDX-License-Identifier: BSD-3-Clause
#include "counted.hpp"

#include <dlfcn.h>
#include <sys/socket.h>

namespace worker_bench {
namespace {
std::atomic<std::uint64_t> copied{0};
}

std::uint64_t copied_bytes() { return copied.load(std::memory_order_relaxed); }
void note_copied(std::uint64_t bytes) { copied.fetch_add(bytes, std::memory_order_relaxed); }

}  // namespace worker_bench

extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  using Call = ssize_t (*)(int, const msghdr*, int);
  static const auto real = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "sendmsg"));
  const ssize_t moved = real(socket, message, flags);
  if (moved > 0) worker_bench::note_copied(static_cast<std::uint64_t>(moved));
  return moved;
}

extern "C" ssize_t recvmsg(int socket, msghdr* message, int flags) {
  using Call = ssize_t (*)(int, msghdr*, int);
  static const auto real = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "recvmsg"));
  const ssize_t moved = real(socket, message, flags);
  if (moved > 0) worker_bench::note_copied(static_cast<std::uint64_t>(moved));
  return moved;
}
