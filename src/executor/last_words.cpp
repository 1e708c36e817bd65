// SPDX-License-Identifier: BSD-3-Clause
#include "executor/last_words.hpp"

#include "executor/instruction.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace offpath::executor {

using device::Fate;

namespace {

constexpr size_t kStackBytes = 64 << 10;

Endpoint* endpoint_of_process = nullptr;
const Images* images_of_process = nullptr;
thread_local uint64_t current_region = 0;
std::atomic<uint64_t> latest_region{0};  // for threads that a region started
void (*say_crash)(int, uint64_t, uint64_t) = nullptr;
void (*say_exit)(int) = nullptr;
std::atomic_flag said;
bool forked = false;

void on_signal(int number, siginfo_t* info, void* context) {
  if (!said.test_and_set()) say_crash(number, reinterpret_cast<uint64_t>(info->si_addr), instruction_of(context));
  signal(number, SIG_DFL);
  raise(number);
}

void on_exit_called(int status, void*) {
  if (!said.test_and_set()) say_exit(status);
}

void tell_host(Fate fate) {
  fate.entry = current_region != 0 ? current_region : latest_region.load();
  endpoint_of_process->send_fate(fate);
}

}  // namespace

void leave_last_words(void (*crashed)(int, uint64_t, uint64_t), void (*exits)(int)) {
  say_crash = crashed;
  say_exit = exits;
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigaction(number, &action, nullptr);
  on_exit(on_exit_called, nullptr);
  pthread_atfork(nullptr, nullptr, [] {
    forked = true;
    said.test_and_set();  // what becomes of a child is no end of ours
  });
}

bool is_forked_child() { return forked; }

void leave_words_to_host(Endpoint& endpoint, const Images& images) {
  endpoint_of_process = &endpoint;
  images_of_process = &images;
  const auto crashed = [](int signal, uint64_t address, uint64_t instruction) {
    Fate fate{.signal = signal, .fault_address = address};
    if (!images_of_process->locate(instruction, fate.image, fate.offset)) fate.offset = instruction;
    tell_host(fate);
  };
  leave_last_words(crashed, [](int status) { tell_host({.exit_status = status}); });
}

void prepare_thread() {
  stack_t stack{};
  stack.ss_sp = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = kStackBytes;
  if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
}

void set_current_region(uint64_t entry) {
  current_region = entry;
  if (entry != 0) latest_region = entry;
}

}  // namespace offpath::executor
