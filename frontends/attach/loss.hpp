// SPDX-License-Identifier: BSD-3-Clause
// What a user is told when a service is lost: what happened, and what to do.
#pragma once

#include <offpath/offpath.h>

#include <cstdint>
#include <string>

namespace offpath::attach {

// Two services that have lost each other, by ranks of the job that they serve: who says so, and another.
struct Parting {
  uint32_t here = 0, there = 0;  // the same: none
  uint64_t silence_ms = 0;       // without a sign of life; 0: lost otherwise
  explicit operator bool() const { return here != there; }
};

// Which of two is told; on all ranks the same. Who gave the other up for its silence knows why; the other only sees
// that its connection ended.
bool says_more(const Parting& one, const Parting& other);

struct Loss {
  std::string problem;  // empty: nothing was lost
  std::string cure;
};

// Of a service that is not lost, but was ready to run for so long and got no processor; `neighbours`: ranks on its node.
Loss starved_of(const char* host, uint64_t starved_ns, uint32_t neighbours);
// Of this process's own service.
Loss loss_of(const char* host, const offpath_session_counters_t& counters);
// The service of `host` has lost that of `other`; silence_ms: so long without a sign of life, or 0.
Loss parting_of(const char* host, const char* other, uint64_t silence_ms);

}  // namespace offpath::attach
