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
  nothing = 0,     // it has just ended, or is about to begin
  earlier = 1,     // an earlier operation of its team must end first
  not_posted = 2,  // members served here have not posted it
  silent = 3,      // nothing came for it from these members: they have not posted it, or wait themselves
  sends = 4,       // these members have blocks for it under way
  takes = 5,       // these members have not taken their blocks yet
  service = 6,     // copies, reductions and computations of this service
  answers = 7      // one-sided: the target's service has not answered
};

inline constexpr size_t kNamedMembers = 8;

struct Standing {
  Waits waits = Waits::nothing;
  uint32_t count = 0;                  // members
  std::vector<uint32_t> members = {};  // the first kNamedMembers, ascending
};

}  // namespace offpath::base
