// SPDX-License-Identifier: BSD-3-Clause
// Enumerations of the C API as callers left them: C lets any number be in one, and in C++ reading that as the
// enumeration is undefined.
#pragma once

#include <cstdint>
#include <cstring>

namespace offpath::client {

template <class Enumeration>
uint32_t number_of(const Enumeration& value) {
  static_assert(sizeof(Enumeration) == sizeof(uint32_t));
  uint32_t number = 0;
  memcpy(&number, &value, sizeof(number));
  return number;
}

// Whether it is one of first to last.
template <class Enumeration>
bool is_between(const Enumeration& value, uint32_t first, uint32_t last) {
  return number_of(value) >= first && number_of(value) <= last;
}

}  // namespace offpath::client
