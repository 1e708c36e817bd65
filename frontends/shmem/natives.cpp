// SPDX-License-Identifier: BSD-3-Clause
#include "shmem/natives.hpp"

#include <dlfcn.h>

namespace offpath::shmem {

namespace {

// A library that was opened privately (a Python extension's) is not in the search order; it is found by its name.
// What the libraries beneath it export is found through it, too.
void* find(void* where, const char* name) {
  static void* const opened = dlopen("liboshmem.so.40", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = dlsym(where, name);
  return found != nullptr || opened == nullptr ? found : dlsym(opened, name);
}

Natives load() {
  Natives natives;
#define OFFPATH_SHMEM_NATIVE(name)                                                 \
  natives.name = reinterpret_cast<decltype(natives.name)>(find(RTLD_NEXT, #name)); \
  natives.complete = natives.complete && natives.name != nullptr;
#include "shmem/natives.def"
#undef OFFPATH_SHMEM_NATIVE
  // Data, so the one in use is the first of all: a program that names it has a copy of its own.
  natives.default_context = static_cast<const shmem_ctx_t*>(find(RTLD_DEFAULT, "oshmem_ctx_default"));
  natives.complete = natives.complete && natives.default_context != nullptr;
  natives.progress = reinterpret_cast<void (*)()>(find(RTLD_DEFAULT, "opal_progress"));
  natives.yield_when_idle = reinterpret_cast<bool (*)(bool)>(find(RTLD_DEFAULT, "opal_progress_set_yield_when_idle"));
  return natives;
}

}  // namespace

const Natives& native() {
  static const Natives natives = load();
  return natives;
}

}  // namespace offpath::shmem
