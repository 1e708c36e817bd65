// SPDX-License-Identifier: BSD-3-Clause
// The operations of the service that one one-sided call became, where somebody wants to know of their end: the call's
// request, or the recorder.
//
// Threads: one at a time.
#pragma once

#include "mpi/recording/decision.hpp"

#include <offpath/offpath.h>

#include <cstdint>
#include <vector>

namespace offpath::mpi {

class Homecoming;

class Submission {
 public:
  Submission() = default;
  Submission(Submission&& other) = default;
  Submission& operator=(Submission&&) = delete;
  // What is under way ends by itself.
  ~Submission();

  // The call that this thread is in is recorded.
  static bool is_recorded() { return recording::decision.operation != recording::kUnrecorded; }

  void add(offpath_op_t* op) { ops_.push_back(op); }
  bool empty() const { return ops_.empty(); }
  // Of all: in progress, else the first failure. `homecoming`: of their window, or nullptr.
  offpath_status_t test(Homecoming* homecoming);
  // After that: says so in the recording, with the MPI error code, and forgets them.
  void end(int error);

 private:
  std::vector<offpath_op_t*> ops_;
  uint64_t recorded_ = recording::decision.operation;
};

}  // namespace offpath::mpi
