// SPDX-License-Identifier: BSD-3-Clause
// The requests of one call of the application that concern us, and what the library is called with.
//
// A tracked request is taken out of the table before the library may complete it: once that is done its handle may mean
// another one, of another thread.
#pragma once

#include "mpi/messages/tracked.hpp"

#include <mpi.h>

#include <vector>

namespace offpath::mpi {

class Group {
 public:
  // May throw bad_alloc.
  Group(int count, MPI_Request* requests);
  // Gives the application its handles back, and the table those that are not complete.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool empty() const { return members_.empty(); }
  bool all_ready();
  bool any_at_service() const;
  void before_all();
  // Those that are not ready are none to the library: how many.
  int hide_unready();
  // They are handed to the library now.
  MPI_Request* hand_over();
  // The library has completed the one at `index`: what became of it. The status is changed where it is ours. MPI error
  // code; nobody was told.
  int finish(int index, MPI_Status* status);
  // It has completed with an error of its own.
  void drop(int index);
  // Of the first one that is ours.
  int raise(int index, int code) const;

 private:
  struct Member {
    int index;
    TrackedRef tracked;
    bool hidden = false;
    bool complete = false;
  };
  Member* at(int index);
  const Member* at(int index) const { return const_cast<Group*>(this)->at(index); }
  MPI_Request native_of(const Member& member) const;

  MPI_Request* requests_;
  std::vector<MPI_Request> natives_;
  std::vector<Member> members_;  // by index
  bool handed_over_ = false;
};

}  // namespace offpath::mpi
