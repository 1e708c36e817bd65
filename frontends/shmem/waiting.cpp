// SPDX-License-Identifier: BSD-3-Clause
// Waiting for a value that another PE writes. Nobody is told of a remote write, so this looks again and again, by the
// native test, with short sleeps that leave a shared core to the service. Between looks the native library is kept
// going, which its test does not do: the PE that is to write may need it first, for a lock or an atomic here.
#include "shmem/waiting.hpp"

#include "base/result.hpp"
#include "shmem/job.hpp"
#include "shmem/natives.hpp"

#include <ctime>

namespace offpath::shmem {

void progress() {
  if (native().progress == nullptr) return;
  const Inside inside;
  native().progress();
}

namespace {

constexpr int kLooksOnSpareCores = 20000;  // some ms: the service does not need this core
constexpr int kLooksOnSharedCores = 200;
constexpr long kNapNs = 20'000;

template <class T>
void wait_until(int (*test)(volatile T*, int, T), volatile T* address, int comparison, T value) {
  const base::ErrnoGuard errno_guard;
  int looks_left = job.spare_cores() ? kLooksOnSpareCores : kLooksOnSharedCores;
  while (test(address, comparison, value) == 0) {
    progress();
    if (looks_left > 0) {
      --looks_left;
      continue;
    }
    const timespec nap{0, kNapNs};
    nanosleep(&nap, nullptr);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
}

}  // namespace
}  // namespace offpath::shmem

using namespace offpath::shmem;

#define WAIT_UNTIL(function, T, A, name)                                                      \
  void function(A* address, int comparison, T value) {                                        \
    if (!job.serves()) return native().shmem_##name##_wait_until(address, comparison, value); \
    wait_until<T>(native().shmem_##name##_test, address, comparison, value);                  \
  }                                                                                           \
  OFFPATH_SHMEM_PROFILED(function)
// In a loop of the program's own it is a wait, too.
#define TEST(name, T)                                                           \
  int shmem_##name##_test(volatile T* address, int comparison, T value) {       \
    const int found = native().shmem_##name##_test(address, comparison, value); \
    if (found == 0 && job.serves()) progress();                                 \
    return found;                                                               \
  }                                                                             \
  OFFPATH_SHMEM_PROFILED(shmem_##name##_test)
// The forms of before 1.4: until it is no longer `value`.
#define WAIT(function, T, A, name)                                                                \
  void function(A* address, T value) { shmem_##name##_wait_until(address, SHMEM_CMP_NE, value); } \
  OFFPATH_SHMEM_PROFILED(function)

extern "C" {

#define OFFPATH_SHMEM_TYPE(name, T) WAIT_UNTIL(shmem_##name##_wait_until, T, volatile T, name)
OFFPATH_SHMEM_WAIT_TYPES
#undef OFFPATH_SHMEM_TYPE
#define OFFPATH_SHMEM_TYPE(name, T) TEST(name, T)
OFFPATH_SHMEM_WAIT_TYPES
#undef OFFPATH_SHMEM_TYPE

WAIT(shmem_short_wait, short, volatile short, short)
WAIT(shmem_int_wait, int, volatile int, int)
WAIT(shmem_long_wait, long, volatile long, long)
WAIT(shmem_longlong_wait, long long, volatile long long, longlong)
WAIT(shmem_wait, long, volatile long, long)

// Open MPI's own, of before 1.4.
WAIT(shmemx_int32_wait, int32_t, int32_t, int32)
WAIT(shmemx_int64_wait, int64_t, int64_t, int64)
WAIT_UNTIL(shmemx_int32_wait_until, int32_t, int32_t, int32)
WAIT_UNTIL(shmemx_int64_wait_until, int64_t, int64_t, int64)

}  // extern "C"
