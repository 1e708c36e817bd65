// SPDX-License-Identifier: BSD-3-Clause
// OFFPATH_MAPPED: which memory of the program lies in the memory that is shared with its service.
#pragma once

#include <cstdint>

namespace offpath::client {

struct Mapping {
  bool lends = true;        // what the program asks us for
  uint32_t moves_from = 0;  // its own, from so many uses on; 0: never

  // off: neither; allocated, or nothing: the first; on: both; a number: the same from so many uses on. Another word counts as
  // nothing, and is a problem of the environment.
  static Mapping from_environment();
};

}  // namespace offpath::client
