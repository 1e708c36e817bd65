// SPDX-License-Identifier: BSD-3-Clause
// The session that takes the place of one whose service is lost. For front ends that are linked with the client; not part of
// the C API.
#pragma once

#include <offpath/offpath.h>

namespace offpath::client {

// OFFPATH_OK: *next is attached to another service of the job on this node; the lost session owns it. OFFPATH_IN_PROGRESS: ask
// again. Anything else: there is none, as services are lost too often here, or none can be started. Never waits, but for a lock;
// any thread.
offpath_status_t next_session(offpath_session_t* lost, offpath_session_t** next);

}  // namespace offpath::client
