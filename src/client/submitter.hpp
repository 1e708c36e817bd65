// SPDX-License-Identifier: BSD-3-Clause
// Hands over the operations that wait in this process for room at the service, as soon as there is some and whatever the program
// does meanwhile: peers may need them before a call of the program's returns that never looks here. A thread, made when an
// operation waits for the first time; it sleeps while none does, and else until the service says that something has ended.
#pragma once

#include <offpath/offpath.h>

#include <condition_variable>
#include <thread>

namespace offpath::client {

class Submitter {
 public:
  // Without a thread, which a system may refuse, tests and waits of the program do it.
  explicit Submitter(offpath_session& session) : session_(session) {}
  // Without the session's mutex.
  ~Submitter();
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;

  // Something waits. With the session's mutex held.
  void wake();

 private:
  void run();

  offpath_session& session_;
  std::condition_variable more_;  // with the session's mutex, as what follows
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace offpath::client
