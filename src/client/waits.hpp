// SPDX-License-Identifier: BSD-3-Clause
// The program's waits inside MPI, of which the preloaded library tells: noted in the sessions that have tasks, since executors on the
// program's cores take tasks of other nodes while its ranks wait. Without that library nothing is noted here.
//
// Threads: any. A wait of several threads at a time is one, from the first one's begin to the last one's end.
#pragma once

struct offpath_session;

namespace offpath::client::waits {

// What a session has of it.
struct Noted {
  offpath_session* next = nullptr;
  bool listens = false;
  bool ours = false;  // the wait that is noted now; else it is one of the program's, which has said so itself
};

// From its first function on, until it goes.
void note_in(offpath_session& session);
void forget(offpath_session& session);

}  // namespace offpath::client::waits
