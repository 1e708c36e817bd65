// SPDX-License-Identifier: BSD-3-Clause
#include "base/silence.hpp"

#include "base/environment.hpp"

namespace offpath::base {

uint64_t silence_limit_ns() {
  constexpr uint64_t kDefaultMs = 30000;
  return Environment::number("OFFPATH_SERVICE_SILENCE_MS", kDefaultMs, 0, 86400000) * 1000000;
}

}  // namespace offpath::base
