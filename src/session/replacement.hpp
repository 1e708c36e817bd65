// SPDX-License-Identifier: BSD-3-Clause
// A service, or an agent, that is to be replaced while its clients run: another one is started from the same file, which may be
// of another release by now, and takes its place at the socket (docs/design/0044-recovery.md, Planned upgrades).
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "session/link.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::session {

inline constexpr const char* kIsReplaced = "it is being replaced, or another one is in its place already";

class Replacement {
 public:
  // What this process is. Before its file can be replaced: then nobody knows any more where that was.
  Replacement(int argc, char** argv);

  // Starts the other one and gives it the socket's path: whoever connects from then on reaches that. Blocks until it answers, or
  // is known not to; then all is as it was. Its process.
  base::Result<int32_t> start(const std::string& socket_path, std::span<const uint8_t> token) const;

 private:
  std::vector<std::string> words_;  // empty: started in a way that cannot be repeated
};

// Answers who has asked for it. Whether the place was given away: then to mark the clients' segments, and not to remove the socket.
// Not again: that at the path is the other one's from then on, whose clients it would not know of.
bool replace(const Replacement& replacement, const base::Fd& asker, const base::Result<PeerCredentials>& credentials,
             const AttachRequest& request, uint32_t clients, const std::string& socket_path,
             std::span<const uint8_t> token);

}  // namespace offpath::session
