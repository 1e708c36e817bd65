// SPDX-License-Identifier: BSD-3-Clause
// Futexes on words of 32 bits in shared memory.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace offpath::device {

// Sleeps while the word has this value; may return without reason.
template <typename Word>
void futex_wait(std::atomic<Word>& word, Word value) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  syscall(SYS_futex, &word, FUTEX_WAIT, static_cast<uint32_t>(value), nullptr, nullptr, 0);
}

template <typename Word>
void futex_wake(std::atomic<Word>& word, int threads = INT_MAX) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  syscall(SYS_futex, &word, FUTEX_WAKE, threads, nullptr, nullptr, 0);
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace offpath::device
