// SPDX-License-Identifier: BSD-3-Clause
// What this rank owes the others while the program blocks in a native call, whichever it is, that may wait for them:
// to move on operations that it holds back (whose path is not agreed, or that go natively after a loss), and to look for
// losses and answer ranks that have seen one (cut.hpp).
//
// A library that calls us in the rounds of its own waiting (Open MPI) does it there. Otherwise a thread does, which
// needs MPI_THREAD_MULTIPLE; it sleeps until the first operation is posted, and naps from then on.
//
// Threads: start and stop by the thread that calls MPI_Init and MPI_Finalize; wake by any, never waits.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace offpath::mpi {

class Mover {
 public:
  // What to ask native MPI_Init for where the program asks for `required`, and is to be told of no more.
  static int thread_level(int required);
  // After it, with what was granted. False: it cannot move anything.
  bool start(int granted);
  void stop();
  // Something is held back from now on, or under way for the first time.
  void wake();

 private:
  void run();

  bool in_rounds_ = false;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool stopping_ = false;
};

}  // namespace offpath::mpi
