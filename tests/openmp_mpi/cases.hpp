// SPDX-License-Identifier: BSD-3-Clause
// What each case does on a side: the same source is compiled for the host, against the real MPI, and for regions,
// against the device library.
#pragma once

#include <cstdint>

// 0: passed. `device`: this is the region's side; the host's runs at the same time on another thread.
struct Setting {
  uint64_t seed;
  int device;
  int failures;
};

extern "C" {
typedef void Case(Setting* setting);
struct NamedCase {
  const char* name;
  Case* run;
};
__attribute__((visibility("default"))) const NamedCase* offpath_cases();
}
