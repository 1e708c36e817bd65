// SPDX-License-Identifier: BSD-3-Clause
#include "natives.hpp"

#include <dlfcn.h>

namespace offpath::shmem {

constinit thread_local int Inside::depth_ = 0;

namespace {

// A library that was opened privately (a Python extension's) is not in the search order; it is found by its name.
void* find(const char* name) {
  static void* const opened = dlopen("liboshmem.so.40", RTLD_LAZY | RTLD_NOLOAD);
  void* const next = dlsym(RTLD_NEXT, name);
  return next != nullptr || opened == nullptr ? next : dlsym(opened, name);
}

Natives load() {
  Natives natives;
#define OFFPATH_SHMEM_NATIVE(name)                                      \
  natives.name = reinterpret_cast<decltype(natives.name)>(find(#name)); \
  natives.complete = natives.complete && natives.name != nullptr;
#include "natives.def"
#undef OFFPATH_SHMEM_NATIVE
  natives.default_context = static_cast<const shmem_ctx_t*>(find("oshmem_ctx_default"));
  natives.complete = natives.complete && natives.default_context != nullptr;
  return natives;
}

}  // namespace

const Natives& native() {
  static const Natives natives = load();
  return natives;
}

}  // namespace offpath::shmem
