// SPDX-License-Identifier: BSD-3-Clause
// The beginning and the end of OpenSHMEM in the program.
#include "shmem/job.hpp"
#include "shmem/natives.hpp"

#include <cstdlib>

namespace offpath::shmem {
namespace {

// A program may end without shmem_finalize; the native library then finalizes itself at exit. Registered after its own
// handler, ours runs before it. Not by atexit, which is a part of this library and registers nothing
// (attach/undying.cpp).
void start() {
  job.start();
  on_exit([](int, void*) { job.stop(); }, nullptr);
}

}  // namespace
}  // namespace offpath::shmem

using namespace offpath::shmem;

extern "C" {

void shmem_init() {
  native().shmem_init();
  start();
}

int shmem_init_thread(int requested, int* provided) {
  const int code = native().shmem_init_thread(requested, provided);
  if (code == 0) start();
  return code;
}

void start_pes(int pes) {
  native().start_pes(pes);
  start();
}

void shmem_finalize() {
  job.stop();
  native().shmem_finalize();
}

void shmem_global_exit(int status) {
  job.abandon();
  native().shmem_global_exit(status);
}

void globalexit(int status) {
  job.abandon();
  native().globalexit(status);
}

OFFPATH_SHMEM_PROFILED(shmem_init)
OFFPATH_SHMEM_PROFILED(shmem_init_thread)
OFFPATH_SHMEM_PROFILED(start_pes)
OFFPATH_SHMEM_PROFILED(shmem_finalize)
OFFPATH_SHMEM_PROFILED(shmem_global_exit)

}  // extern "C"
