/* SPDX-License-Identifier: BSD-3-Clause
 * Preloaded: the system has no thread left for C++ programs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  Dl_info caller;
  if (dladdr(__builtin_return_address(0), &caller) != 0 && strstr(caller.dli_fname, "libstdc++") != NULL) return EAGAIN;
  __typeof__(&pthread_create) create = (__typeof__(&pthread_create))dlsym(RTLD_NEXT, "pthread_create");
  return create(thread, attributes, body, argument);
}
