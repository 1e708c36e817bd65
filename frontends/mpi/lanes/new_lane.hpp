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

// The ranks of a communicator. May throw bad_alloc.
class Group {
 public:
  // MPICH 5 puts ranks that a Cartesian communicator has left out into its group, behind the others.
  explicit Group(MPI_Comm comm);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  MPI_Group get() const { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

// Nothing: a rank is not `able`, or could not make its part; the answer is the same on all ranks. `what` is made, for a person. Collective
// over `comm`.
std::optional<Assembly> assemble(MPI_Comm comm, const char* what, bool able);
// Tells the user why `what` is native. False.
bool say_cannot(const char* what, const std::exception& problem);
// Whether all ranks have what they have made: `own`, this one has. Collective.
bool all_have(MPI_Comm comm, bool own);

// A lane that is being made: all ranks of a communicator have it in the end, or none. Each rank makes what may fail, and then all agree;
// after that nothing fails on one alone. So all come to agree(), whatever failed before.
class NewLane {
 public:
  // For `comm`, which is the one in `cell`; `able`: this rank has no reason against it. `what` as above, `compress` as of
  // adopt_communicator().
  NewLane(MPI_Comm comm, const char* what, CommCell cell, bool able, Preference preference,
          const std::string& compress);
  ~NewLane();
  NewLane(const NewLane&) = delete;
  NewLane& operator=(const NewLane&) = delete;
  // nullptr: this rank has none. It has no communicators yet.
  Lane* get() const { return lane_.empty() ? nullptr : lane_.front().get(); }
  // `able`: this rank has whatever else it needs. True: all have it, and it is the offloader's. Else it goes with this object. Once.
  // Collective.
  bool agree(bool able);

 private:
  MPI_Comm comm_;
  const char* what_;
  std::optional<Group> group_;
  Lanes lane_;
  ServiceTeam* service_ = nullptr;  // the lane's
};

}  // namespace offpath::mpi
