// SPDX-License-Identifier: BSD-3-Clause
// The part of a window's synchronisation in which processes wait for each other: empty native messages and barriers on
// the window's own communicator. What they communicated is done before: that is the caller's part.
//
// Threads: one at a time, as MPI asks of these calls.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace offpath::mpi {

class Handshake {
 public:
  explicit Handshake(MPI_Comm comm) : comm_(comm) {}

  void barrier();
  // A barrier that adds up what all bring.
  void sum(int64_t* numbers, int count);
  // Exposes to `origins`; `tells`: they wait to hear of it.
  void post(const std::vector<int>& origins, bool tells);
  // Waits until all `targets` have exposed.
  void start(const std::vector<int>& targets);
  void complete(const std::vector<int>& targets);
  // All origins of post() have completed: wait for that, or look.
  void wait();
  bool test();

 private:
  MPI_Comm comm_;
  std::vector<MPI_Request> completions_;
};

}  // namespace offpath::mpi
