// SPDX-License-Identifier: BSD-3-Clause
// A thread in somebody else's process: the program's signals are never delivered to it.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace offpath::base {

// May throw, as std::thread does.
template <typename Function>
std::thread quiet_thread(Function function) {
  // Inherited by the thread; the caller has its own back however this ends.
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    sigset_t before;
  };
  const Blocked blocked;
  return std::thread(std::move(function));
}

}  // namespace offpath::base
