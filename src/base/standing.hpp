// SPDX-License-Identifier: BSD-3-Clause
// What holds an operation up, as far as its service knows: found out by the engine, shown in the services' observation
// files. The first of these that applies, with the members it is about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::base {

// The numbers stand in files.
enum class Waits : uint32_t {
#define OFFPATH_WAITS(name, number, text, about) name = number,
#include <offpath/words/waits.def>
};

inline constexpr size_t kNamedMembers = 8;

struct Standing {
  Waits waits = Waits::nothing;
  uint32_t count = 0;                  // members
  std::vector<uint32_t> members = {};  // the first kNamedMembers, ascending
};

}  // namespace offpath::base
