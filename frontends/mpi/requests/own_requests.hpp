// SPDX-License-Identifier: BSD-3-Clause
// Our requests among those of one call of the application, and what the library is called with.
#pragma once

#include "mpi/job/waiting.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/standing.hpp"

#include <mpi.h>

#include <vector>

namespace offpath::mpi {

// Holds them while it lives, so that what became of them can be told after the library has freed the requests.
class OwnRequests {
 public:
  // May throw bad_alloc.
  OwnRequests(int count, MPI_Request* requests);
  // Gives the application its handles back, and follows those that are not complete.
  ~OwnRequests();
  OwnRequests(const OwnRequests&) = delete;
  OwnRequests& operator=(const OwnRequests&) = delete;

  bool empty() const { return members_.empty(); }
  // Waits for those that the library is not to wait for; native progress goes on meanwhile.
  void await();
  // Between two rounds; native progress goes on.
  void pause(Waiter& waiter);
  Beside beside() const { return beside_; }

  // Those of the library that are not over are none to it: how many.
  int hide();
  // For a call of the library's that completes none.
  MPI_Request* natives() { return exchanged_.get(); }
  // For one that may complete those that are not hidden.
  MPI_Request* hand_over();
  // The one at `index`, which the library says is over: as Requested::show().
  void show(int index, MPI_Status* status);
  // Some of them have more to say in a status than the library.
  bool change_statuses() const { return followed_ != 0; }
  // Whether finish() says nothing of any, should the library have completed all.
  bool nothing_to_say() const;
  // The library has completed the one at `index`: what became of it. The status is changed where it is ours. MPI error
  // code; nobody was told.
  int finish(int index, MPI_Status* status);
  // It has completed with an error of its own. Whether it has called the handler of the program's.
  bool drop(int index);
  // Of one that has failed.
  int raise(int index, int code);

 private:
  struct Member {
    int index;
    MPI_Request handle;
    Held requested;
    bool handed_over = false;  // nobody follows it
    bool complete = false;
  };
  bool all_finished();
  Member* at(int index);
  MPI_Request& native_of(const Member& member) { return exchanged_.copies()[member.index]; }

  Exchanged exchanged_;
  std::vector<Member> members_;  // by index
  int followed_ = 0;
  Beside beside_ = Beside::nothing;
  bool goes_beside_native_ = false;
};

}  // namespace offpath::mpi
