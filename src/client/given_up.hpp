// SPDX-License-Identifier: BSD-3-Clause
// For front ends that are linked with the client; not part of the C API.
#pragma once

#include <offpath/offpath.h>

namespace offpath::client {

// This member does without what is under way in the team, which ends soon with an error; nothing of the service works on its memory
// then. To the others it is as if the process were lost. Never waits; any thread.
void give_up(offpath_team_t* team);

}  // namespace offpath::client
