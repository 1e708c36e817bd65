// SPDX-License-Identifier: BSD-3-Clause
// The session that takes the place of one whose service is lost, or leaves as another one is in its place. For front ends that are
// linked with the client; not part of the C API.
#pragma once

#include <offpath/offpath.h>

#include <utility>

namespace offpath::client {

// Another service is in its place, and it serves only what it has. A load; any thread.
bool leaves(const offpath_session_t* session);
// OFFPATH_OK: *next is attached to another service of the job on this node; this session owns it. If its service only leaves, it is
// left once nothing of the session is there, and nobody stays. OFFPATH_IN_PROGRESS: ask again. Anything
// else: there is none, as services are lost too often here, or none can be started. Never waits, but for a lock; any thread.
offpath_status_t next_session(offpath_session_t* session, offpath_session_t** next);

// A question to its service, and whether it has answered that one: then it has lived since. Any thread.
uint32_t ask(offpath_session_t* session);
bool has_answered(const offpath_session_t* session, uint32_t question);

// So often as it stays, the session does not leave its service. Who wants to make something there later says so before another
// session has been asked for, or sees afterwards that this one lives. nullptr: nothing happens. Any thread.
void stay(offpath_session_t* session);
void need_not_stay(offpath_session_t* session);

// Stays for as long as it is there.
class Stay {
 public:
  explicit Stay(offpath_session_t* session = nullptr) : session_(session) { stay(session_); }
  ~Stay() { need_not_stay(session_); }
  Stay(Stay&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
  Stay& operator=(Stay&& other) noexcept {
    std::swap(session_, other.session_);
    return *this;
  }
  offpath_session_t* session() const { return session_; }

 private:
  offpath_session_t* session_;
};

}  // namespace offpath::client
