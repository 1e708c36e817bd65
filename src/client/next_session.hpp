// SPDX-License-Identifier: BSD-3-Clause
// The session that takes the place of one whose service is lost, or leaves as another one is in its place. For front ends that are
// linked with the client; not part of the C API.
#pragma once

#include <offpath/offpath.h>

namespace offpath::client {

// Another service is in its place, and it serves only what it has. A load; any thread.
bool leaves(const offpath_session_t* session);
// OFFPATH_OK: *next is attached to another service of the job on this node; this session owns it. If its service only leaves, it is
// left once nothing of the session is there; whoever asks makes nothing in it any more. OFFPATH_IN_PROGRESS: ask again. Anything
// else: there is none, as services are lost too often here, or none can be started. Never waits, but for a lock; any thread.
offpath_status_t next_session(offpath_session_t* session, offpath_session_t** next);

}  // namespace offpath::client
