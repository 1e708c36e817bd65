// SPDX-License-Identifier: BSD-3-Clause
// A library that exists once for the host and once for the device, without target regions of its own.
#include <stdio.h>

const char* log_machine(void) {
#if defined(__aarch64__)
  return "aarch64";
#else
  return "x86_64";
#endif
}

void log_line(const char* text) { printf("%s: %s\n", log_machine(), text); }
