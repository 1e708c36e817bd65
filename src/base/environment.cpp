// SPDX-License-Identifier: BSD-3-Clause
#include "base/environment.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace offpath::base {
namespace {

std::mutex problem_mutex;
Status first_problem;

}  // namespace

void Environment::refuse(const char* name, const std::string& value, const char* expected) {
  std::lock_guard lock(problem_mutex);
  if (first_problem.ok()) {
    first_problem = Status::error(OFFPATH_ERR_ARGUMENT, "%s='%.40s' is not %s (nothing else is understood). Correct it",
                                  name, value.c_str(), expected);
  }
}

std::string Environment::text(const char* name) {
  const char* value = secure_getenv(name);  // of whom the program trusts more than who started it
  return value == nullptr ? std::string() : std::string(value);
}

uint64_t Environment::number(const char* name, uint64_t fallback, uint64_t low, uint64_t high) {
  const std::string value = text(name);
  if (value.empty()) return fallback;
  char* end = nullptr;
  errno = 0;
  const unsigned long long parsed = strtoull(value.c_str(), &end, 10);
  if (errno != 0 || *end != '\0' || value[0] < '0' || value[0] > '9' || parsed < low || parsed > high) {
    char expected[80];
    snprintf(expected, sizeof(expected), "a whole number from %llu to %llu", static_cast<unsigned long long>(low),
             static_cast<unsigned long long>(high));
    refuse(name, value, expected);
    return fallback;
  }
  return parsed;
}

bool Environment::flag(const char* name, bool fallback) {
  const std::string value = text(name);
  if (value.empty()) return fallback;
  for (const char* yes : {"1", "yes", "on", "true"}) {
    if (strcasecmp(value.c_str(), yes) == 0) return true;
  }
  for (const char* no : {"0", "no", "off", "false"}) {
    if (strcasecmp(value.c_str(), no) == 0) return false;
  }
  refuse(name, value, "0 or 1");
  return fallback;
}

Status Environment::problem() {
  std::lock_guard lock(problem_mutex);
  return first_problem;
}

}  // namespace offpath::base
