// SPDX-License-Identifier: BSD-3-Clause
// Receiving clients on a listening socket of the local link: what a service does, and the agent of one on another machine.
#pragma once

#include "session/link.hpp"
#include "session/segment_view.hpp"

namespace offpath::session {

// How long whoever has connected may take to say what he wants.
inline constexpr int kAttachTimeoutMs = 2000;

void fill_refusal(AttachReply& reply, const base::Status& status);
// Says no. Reads first: closing a socket with something unread takes the answer away from the other side.
void turn_away(const base::Fd& socket, const base::Status& reason);
// Turns clients away until none has come for a while.
void refuse_all(int listening, const base::Status& reason);

// Is it of this user and this release?
base::Status check_peer(const base::Result<PeerCredentials>& credentials, const AttachRequest& request);
// And of this job? Takes a time that tells nothing about the token.
base::Status check_client(const base::Result<PeerCredentials>& credentials, const AttachRequest& request,
                          const uint8_t (&token)[OFFPATH_TOKEN_BYTES]);
// What a client sent, checked: the view of its segment.
base::Result<SegmentView> open_segment(const base::Result<PeerCredentials>& credentials, const AttachRequest& request,
                                       base::Result<base::Fd>& segment_fd, const uint8_t (&token)[OFFPATH_TOKEN_BYTES]);

}  // namespace offpath::session
