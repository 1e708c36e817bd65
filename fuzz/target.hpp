// SPDX-License-Identifier: BSD-3-Clause
// A fuzz target: libFuzzer's entry point, and seeds for the bounded run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);
std::vector<std::vector<uint8_t>> fuzz_seeds();

// Ends the program, so that a fuzzer sees it.
#define FUZZ_REQUIRE(condition)                                                 \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                  \
    }                                                                           \
  } while (0)
