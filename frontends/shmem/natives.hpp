// SPDX-License-Identifier: BSD-3-Clause
// The program's own OpenSHMEM library: what lies behind us in the order of symbol search.
#pragma once

#include "attach/inside.hpp"
#include "shmem/types.hpp"

// What these declare we export; everything else of ours is hidden.
#pragma GCC visibility push(default)
#include <shmem.h>
#include <shmemx.h>
#pragma GCC visibility pop

namespace offpath::shmem {

// The header's context type points to a structure without a name, which C++ takes for a different one in every file.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
struct Natives {
#define OFFPATH_SHMEM_NATIVE(name) decltype(&::name) name = nullptr;
#include "shmem/natives.def"
#undef OFFPATH_SHMEM_NATIVE
  const shmem_ctx_t* default_context = nullptr;
  // Lets the library answer other PEs, which may need it: for an atomic or a lock here. Null: there is none to be had.
  void (*progress)() = nullptr;
  bool (*yield_when_idle)(bool yields) = nullptr;  // as for MPI; returns what was so before
  bool complete = true;  // false: some function is missing, so this is a library we do not know
};
#pragma GCC diagnostic pop

// Looked up on first use, from any thread.
const Natives& native();

// SHMEM_CTX_DEFAULT as the forms without a context hand it on.
inline constexpr shmem_ctx_t kDefaultContext = nullptr;
inline shmem_ctx_t native_context(shmem_ctx_t context) {
  return context == kDefaultContext ? *native().default_context : context;
}

// Calls within one's life come from the native library itself, which calls some of its functions by their public names
// (its locks do): they stay native, or half a lock would be offloaded.
using attach::Inside;

}  // namespace offpath::shmem

// A function of ours under the name, too, by which a tool that wraps it calls the library's. Natively all would be left out that
// such a call is to complete, and atomics would be no longer atomic with those that the tool does not wrap.
#define OFFPATH_SHMEM_PROFILED(name) \
  extern decltype(::name) p##name __attribute__((alias(#name), visibility("default")));
