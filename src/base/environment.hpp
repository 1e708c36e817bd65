// SPDX-License-Identifier: BSD-3-Clause
// Environment: the only place that reads environment variables. Values are checked; a bad one gives the default and
// is remembered as a problem, which the owner of the process reports once.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace offpath::base {

class Environment {
 public:
  // Empty when unset.
  static std::string text(const char* name);
  // `fallback` when unset or not a whole number in [low, high].
  static uint64_t number(const char* name, uint64_t fallback, uint64_t low, uint64_t high);
  // 1/yes/on/true and 0/no/off/false.
  static bool flag(const char* name, bool fallback);
  // A value that its reader does not take, and what it would: "one of a, b".
  static void refuse(const char* name, const std::string& value, const char* expected);
  // The first bad value met so far, or ok.
  static Status problem();
};

}  // namespace offpath::base
