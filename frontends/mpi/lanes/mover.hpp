// SPDX-License-Identifier: BSD-3-Clause
// Moves on what this rank holds back (operations whose path is not agreed, or that the service has no room for) while
// the program blocks in a native call, whichever it is: other ranks may have to complete them before it returns.
//
// A library that calls us in the rounds of its own waiting (Open MPI) does it there. Otherwise a thread does, which
// needs MPI_THREAD_MULTIPLE; it sleeps while nothing is held back.
//
// Threads: start and stop by the thread that calls MPI_Init and MPI_Finalize; wake by any, never waits.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace offpath::mpi {

class Mover {
 public:
  // What to ask native MPI_Init for where the program asks for `required`.
  static int thread_level(int required);
  // After it, with what was granted. False: it cannot move anything.
  bool start(int granted);
  void stop();
  // Something is held back from now on.
  void wake();

 private:
  void run();

  bool in_rounds_ = false;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool wanted_ = false;
  bool stopping_ = false;
};

extern Mover mover;

}  // namespace offpath::mpi
