// SPDX-License-Identifier: BSD-3-Clause
// Receiving clients on a listening socket of the local link: what a service does, and the agent of one on another machine.
#pragma once

#include "session/link.hpp"
#include "session/lobby.hpp"
#include "session/segment_view.hpp"

#include <functional>

namespace offpath::session {

// How long whoever has connected may take to say what he wants.
inline constexpr uint64_t kAttachTimeoutNs = 2000000000;

// At the local link the first message says all.
struct Stranger {
  static bool has_greeted() { return false; }
};
using LocalLobby = Lobby<Stranger>;

// Who has said what he wants, or has gone.
struct Caller {
  base::Fd socket;
  base::Result<PeerCredentials> credentials;
  AttachRequest request;
  base::Result<base::Fd> segment;  // what came along

  bool wants(RequestKind kind) const { return segment.ok() && request.kind == static_cast<uint32_t>(kind); }
};
// Calls `greet` with each who has spoken, but for one for whom no descriptor is left: he is told so. whose: lobby it is.
void receive(LocalLobby& lobby, const char* whose, const std::function<void(Caller)>& greet);

void fill_refusal(AttachReply& reply, const base::Status& status);
// Says no to who has spoken.
void refuse(const base::Fd& socket, const base::Status& reason);
// Turns clients away until none has come for a while.
void refuse_all(int listening, const base::Status& reason);

// Is it of this user and this release?
base::Status check_peer(const base::Result<PeerCredentials>& credentials, const AttachRequest& request);
// And of this job? Takes a time that tells nothing about the token.
base::Status check_client(const base::Result<PeerCredentials>& credentials, const AttachRequest& request,
                          const uint8_t (&token)[OFFPATH_TOKEN_BYTES]);
// What a client sent, checked: the view of its segment.
base::Result<SegmentView> open_segment(Caller& caller, const uint8_t (&token)[OFFPATH_TOKEN_BYTES]);

}  // namespace offpath::session
