// SPDX-License-Identifier: BSD-3-Clause
// Commands that a user has written, run by the shell.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <string>

namespace offpath::base {

// Starts it as a group of its own, so that it can be ended with what it has started. The descriptors are the caller's still.
// Errors: OFFPATH_ERR_NO_SERVICE.
Result<pid_t> start_shell(const std::string& command, const Fd& input, const Fd& output, const Fd& error);

// The last line that is not empty; empty: there is none.
std::string last_line(std::string text);

}  // namespace offpath::base
