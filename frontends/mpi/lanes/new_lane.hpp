// SPDX-License-Identifier: BSD-3-Clause
// Lanes, and what windows have of them, are made by all ranks of a communicator or by none, whatever fails on one of them: one that could
// not make its part comes to the same agreements as the others, or these would wait for it for ever.
#pragma once

#include "mpi/lanes/lane.hpp"

#include <mpi.h>

#include <exception>
#include <optional>
#include <string>

namespace offpath::mpi {

// Nothing: a rank is not `able`; the answer is the same on all ranks. What has no service has failed on this rank: then all have to hear that
// (all_have) before anybody uses it. `what` is made, for a person. Collective over `comm`.
std::optional<Assembly> assemble(MPI_Comm comm, const char* what, bool able);
// Tells the user why `what` is native. False.
bool say_cannot(const char* what, const std::exception& problem);
// Whether all ranks have what they have made: `own`, this one has. Collective.
bool all_have(MPI_Comm comm, bool own);

// A lane that is being made: all ranks of a communicator have it in the end, or none. Whatever fails on one of them on the way, it comes to
// agree() as the others do. Collective, both.
class NewLane {
 public:
  // For `comm`, which is the one in `cell`; `able`: this rank has no reason against it. `what` as above, `compress` as of
  // adopt_communicator().
  NewLane(MPI_Comm comm, const char* what, CommCell cell, bool able, Preference preference,
          const std::string& compress);
  ~NewLane();
  NewLane(const NewLane&) = delete;
  NewLane& operator=(const NewLane&) = delete;
  // nullptr: this rank has none.
  Lane* get() const { return lane_.empty() ? nullptr : lane_.front().get(); }
  // `able`: this rank has whatever else it needs. True: all have it, and it is the offloader's. Else it goes with this object. Once.
  bool agree(bool able);

 private:
  MPI_Comm comm_;
  MPI_Comm shadow_ = MPI_COMM_NULL;  // null: all know that there is none
  MPI_Comm council_ = MPI_COMM_NULL;
  Lanes lane_;
};

}  // namespace offpath::mpi
