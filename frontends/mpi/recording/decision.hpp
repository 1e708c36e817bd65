// SPDX-License-Identifier: BSD-3-Clause
// What becomes of the call that this thread is in, said by the back end that decides it to the recorder in front of it.
// Nobody else reads it, so it may be said at any time.
#pragma once

#include <cstdint>

namespace offpath::mpi::recording {

inline constexpr uint64_t kUnrecorded = UINT64_MAX;

struct Decision {
  uint64_t operation = kUnrecorded;  // the number under which the call is recorded
  bool offloaded = false;
  const char* why = nullptr;  // a word of docs/guide-telemetry.md; null: nobody decided
  const char* algorithm = "";
};

inline constinit thread_local Decision decision;

// A call that posts an operation: gives the operation its number before anybody below can ask for it.
class Posting {
 public:
  explicit Posting(uint64_t number) { decision = {.operation = number}; }
  ~Posting() { decision = {}; }
  Posting(const Posting&) = delete;
  Posting& operator=(const Posting&) = delete;
};

}  // namespace offpath::mpi::recording
