// SPDX-License-Identifier: BSD-3-Clause
// Starting a service: a process that is nobody's child, holds none of this process's descriptors, and already has the
// listening socket, so whoever connects is served as soon as it runs.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::session {

// The descriptors that it finds.
inline constexpr int kListenFd = 3;
inline constexpr int kTokenFd = 4;

// Creates the socket and executes the words with it, behind those of OFFPATH_SERVICE_WRAPPER; the token goes through a pipe.
// Returns when the program was executed, not when it serves, with its process (base::open_process). Any thread.
base::Result<base::Fd> launch(std::vector<std::string> words, const std::string& socket_path,
                              std::span<const uint8_t> token);

}  // namespace offpath::session
