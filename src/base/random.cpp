// SPDX-License-Identifier: BSD-3-Clause
#include "base/random.hpp"

#include <sys/random.h>

#include <cerrno>

namespace offpath::base {

void fill_random(void* data, size_t bytes) {
  auto* out = static_cast<uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t got = getrandom(out, bytes, 0);
    if (got < 0) continue;  // only EINTR is possible with flags 0 and a valid buffer
    out += got;
    bytes -= static_cast<size_t>(got);
  }
}

uint64_t random_u64() {
  uint64_t value = 0;
  fill_random(&value, sizeof(value));
  return value;
}

}  // namespace offpath::base
