// SPDX-License-Identifier: BSD-3-Clause
#include "worker.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <new>
#include <stdexcept>

#include "../../apps/kit/clocks.hpp"

namespace wire {
namespace {

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

// In a session of its own, as a program is to a service: the scheduler shares a core between sessions.
Worker::Worker(int core) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to share");
  shared_ = new (memory) Shared;
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("no process to compute in");
  if (process_ > 0) return;
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  kit::pin(core);
  work(*shared_, parent);
}

Worker::~Worker() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  munmap(shared_, sizeof(Shared));
}

void Worker::run() {
  shared_->runs.store(1);
  futex(shared_->runs, FUTEX_WAKE, 1);
}

void Worker::pause() { shared_->runs.store(0); }

void Worker::work(Shared& shared, pid_t parent) {
  double x = 1.0;
  while (getppid() == parent) {
    while (shared.runs.load(std::memory_order_relaxed) == 0) futex(shared.runs, FUTEX_WAIT, 0);
    for (int piece = 0; piece < 1000 && shared.runs.load(std::memory_order_relaxed) != 0; ++piece) {
      for (int i = 0; i < 4000; ++i) x = x * 1.0000001 + 1e-9;
      if (!std::isfinite(x)) x = 1.0;
      shared.done.fetch_add(1, std::memory_order_relaxed);
    }
  }
  _exit(0);
}

}  // namespace wire
