// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace machine {
namespace {

constexpr int kTries = 9;
constexpr size_t kBytes = size_t{8} << 20;
constexpr int kRoundTrips = 200;

// `amount` of something each time `once` is called; the first call warms up.
Spread speed(double amount, const std::function<void()>& once) {
  std::vector<double> values;
  once();
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t start = kit::now_ns();
    once();
    values.push_back(amount / double(kit::now_ns() - start));
  }
  return kit::spread(values);
}

// Page aligned and touched.
std::vector<uint8_t> block() { return std::vector<uint8_t>(kBytes, 1); }

void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

void await(std::atomic<uint32_t>& word, uint32_t value) {
  for (uint32_t seen = word; seen != value; seen = word) futex_wait(word, seen);
}

}  // namespace

Spread copy_speed() {
  auto from = block(), to = block();
  return speed(kBytes, [&] { std::memcpy(to.data(), from.data(), kBytes); });
}

Spread reduce_speed() {
  std::vector<double> sum(kBytes / sizeof(double), 1), other(sum.size(), 2);
  return speed(kBytes, [&] {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  });
}

Spread compute_speed() {
  constexpr int kSteps = 2'000'000;
  volatile double seed = 1.5;
  return speed(2.0 * kSteps, [&] {
    double x = seed;
    for (int i = 0; i < kSteps; ++i) x = x * 0.999999 + 1e-6;
    seed = x;
  });
}

std::optional<Spread> cma_speed() {
  auto from = block(), to = block();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  if (child < 0) return std::nullopt;
  bool good = true;
  const Spread result = speed(kBytes, [&] {
    const iovec local{to.data(), kBytes}, remote{from.data(), kBytes};
    good = good && process_vm_readv(child, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(kBytes);
  });
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!good) return std::nullopt;
  return result;
}

Spread wake_time(int other_core) {
  std::atomic<uint32_t> turn{0};
  std::thread other([&] {
    kit::pin(other_core);
    for (uint32_t i = 0; i < kRoundTrips; ++i) {
      await(turn, 2 * i + 1);
      turn = 2 * i + 2;
      futex_wake(turn);
    }
  });
  std::vector<double> values;
  for (uint32_t i = 0; i < kRoundTrips; ++i) {
    const std::int64_t start = kit::now_ns();
    turn = 2 * i + 1;
    futex_wake(turn);
    await(turn, 2 * i + 2);
    values.push_back(double(kit::now_ns() - start) / 2);
  }
  other.join();
  return kit::spread(values);
}

Spread shared_copy_speed(int other_core) {
  std::atomic<bool> over{false};
  std::thread other([&] {
    kit::pin(other_core);
    auto from = block(), to = block();
    while (!over) std::memcpy(to.data(), from.data(), kBytes);
  });
  const Spread result = copy_speed();
  over = true;
  other.join();
  return result;
}

}  // namespace machine
