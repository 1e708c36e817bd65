// SPDX-License-Identifier: BSD-3-Clause
// Enumerations of the C API as callers left them: C lets any number be in one, and in C++ reading that as the
// enumeration is undefined.
#pragma once

#include "base/words.hpp"

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

// Whether it is one of those that there are.
template <class Enumeration>
bool is_word(const Enumeration& value) {
  return base::is_word<Enumeration>(number_of(value));
}

}  // namespace offpath::client
