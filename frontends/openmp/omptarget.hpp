// SPDX-License-Identifier: BSD-3-Clause
// What libomptarget 13 to 16 and its plugins hand each other.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct OmpEntry {
  void* address;
  char* name;
  size_t bytes;
  int32_t flags;
  int32_t reserved;
};

struct OmpImage {
  void* begin;
  void* end;
  OmpEntry* entries_begin;  // the host's
  OmpEntry* entries_end;
};

struct OmpTable {
  OmpEntry* begin;
  OmpEntry* end;
};

struct OmpAsync {
  void* queue;  // ours; null: none yet
};

struct OmpKernelArguments {  // LLVM 16
  uint32_t version;
  uint32_t count;
};

}  // extern "C"
