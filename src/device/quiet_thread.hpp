// SPDX-License-Identifier: BSD-3-Clause
// A thread in somebody else's process: the program's signals are never delivered to it.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace offpath::device {

template <typename Function>
std::thread quiet_thread(Function function) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(function));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace offpath::device
