// SPDX-License-Identifier: BSD-3-Clause
// Memory of the front end that runs out at an exact allocation of the program's thread: where the program exports
// `long offpath_fake_allocations_left`, and that is not 0, the last one of so many fails.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

namespace {

bool fails() {
  static long* const left = static_cast<long*>(dlsym(RTLD_DEFAULT, "offpath_fake_allocations_left"));
  return left != nullptr && *left > 0 && gettid() == getpid() && --*left == 0;
}

}  // namespace

void* operator new(std::size_t bytes) {
  void* const made = fails() ? nullptr : malloc(bytes == 0 ? 1 : bytes);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, std::size_t) noexcept { free(memory); }
