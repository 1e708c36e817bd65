// SPDX-License-Identifier: BSD-3-Clause
// The parent of a service for agents. Its own host's clients notice when it is silent, but they are on another machine, and
// lose only the link; a service that a signal has stopped would stay there with all it holds.
#pragma once

#include "session/link.hpp"

#include <sys/types.h>

namespace offpath::service {

// Blocks until that child has ended. One that stays stopped for the limit of silence is ended, and its socket is gone.
void guard(pid_t service, const session::OwnSocketName& socket);

}  // namespace offpath::service
