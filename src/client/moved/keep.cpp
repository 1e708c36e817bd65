// SPDX-License-Identifier: BSD-3-Clause
#include "client/moved/keep.hpp"

#include <dlfcn.h>

namespace offpath::client::moved {

const offpath_watch_t* watch() {
  static const offpath_watch_t* const found = [] {
    const auto open = reinterpret_cast<offpath_watch_open_function*>(dlsym(RTLD_DEFAULT, OFFPATH_WATCH_OPEN));
    const offpath_watch_t* const its = open == nullptr ? nullptr : open();
    return its != nullptr && its->struct_bytes == sizeof(*its) ? its : nullptr;
  }();
  return found;
}

void keep(const Extent& memory) {
  if (memory.bytes() > 0 && watch() != nullptr) watch()->keep(memory.begin, memory.end);
}

void release(const Extent& memory) {
  if (memory.bytes() > 0 && watch() != nullptr) watch()->release(memory.begin, memory.end);
}

}  // namespace offpath::client::moved
