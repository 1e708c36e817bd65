// SPDX-License-Identifier: BSD-3-Clause
// Where a thread was when a signal interrupted it.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace offpath::executor {

// Of a signal handler's third argument; 0 on machines that we do not know. Any thread, in signal handlers too.
inline uint64_t instruction_of(void* context) {
  const auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uint64_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine.pc;
#else
  return 0;
#endif
}

}  // namespace offpath::executor
