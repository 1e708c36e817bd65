// SPDX-License-Identifier: BSD-3-Clause
#include "session/reception.hpp"

#include "base/log.hpp"

#include <poll.h>

#include <cstdio>

namespace offpath::session {

using base::Fd;
using base::Result;
using base::Status;

void fill_refusal(AttachReply& reply, const Status& status) {
  reply.status = status.code();
  snprintf(reply.text, sizeof(reply.text), "%s", status.text());
}

// Also what is for nobody is read: closing a socket with something unread takes the answer away from the other side.
void receive(LocalLobby& lobby, const char* whose, const std::function<void(Caller)>& greet) {
  lobby.look([&](LocalLobby::Guest& guest) {
    pollfd said{guest.socket.get(), POLLIN, 0};
    if (poll(&said, 1, 0) <= 0) return false;
    const auto credentials = peer_credentials(guest.socket.get());
    AttachRequest request{};
    auto segment = receive_message(guest.socket.get(), &request, sizeof(request), 0);
    if (guest.no_room) {
      refuse(guest.socket, Status::error(OFFPATH_ERR_NO_SERVICE,
                                         "the %s has no file descriptor left for another client. Raise 'ulimit -n' "
                                         "(the hard limit, too)",
                                         whose));
    } else {
      greet({lobby.take(guest), credentials, request, std::move(segment)});
    }
    return true;
  });
}

void refuse(const Fd& socket, const Status& reason) {
  base::log_write(base::LogLevel::warn, "refused a client: %s", reason.text());
  AttachReply reply{};
  reply.version = kLinkVersion;
  fill_refusal(reply, reason);
  [[maybe_unused]] const auto status = send_message(socket.get(), &reply, sizeof(reply));
}

void refuse_all(int listening, const Status& reason) {
  LocalLobby lobby({kAttachTimeoutNs});
  lobby.open(listening);
  pollfd wait{lobby.event_fd(), POLLIN, 0};
  constexpr int kLingerMs = 2000;
  while (poll(&wait, 1, lobby.wait_ms(kLingerMs)) > 0 || lobby.any()) {
    receive(lobby, "service", [&reason](const Caller& caller) { refuse(caller.socket, reason); });
  }
}

Status check_peer(const Result<PeerCredentials>& credentials, const AttachRequest& request) {
  if (!credentials.ok()) return credentials.status();
  if (credentials->uid != getuid()) {
    return Status::error(OFFPATH_ERR_PERMISSION, "the service belongs to another user");
  }
  if (request.version != kLinkVersion) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "library and service are of different releases. Install them together");
  }
  return {};
}

Status check_client(const Result<PeerCredentials>& credentials, const AttachRequest& request,
                    const uint8_t (&token)[OFFPATH_TOKEN_BYTES]) {
  if (Status status = check_peer(credentials, request); !status.ok()) return status;
  volatile uint8_t different = 0;
  for (size_t i = 0; i < sizeof(token); ++i) different = different | (request.token[i] ^ token[i]);
  if (different != 0) return Status::error(OFFPATH_ERR_PERMISSION, "the service belongs to another job");
  return {};
}

Result<SegmentView> open_segment(Caller& caller, const uint8_t (&token)[OFFPATH_TOKEN_BYTES]) {
  if (!caller.segment.ok()) return caller.segment.status();
  if (const Status status = check_client(caller.credentials, caller.request, token); !status.ok()) return status;
  auto segment = base::Memfd::adopt(std::move(caller.segment.value()), caller.request.segment_bytes);
  if (!segment.ok()) return segment.status();
  segment->close_descriptor();  // there may be many clients
  return SegmentView::open(std::move(segment.value()));
}

}  // namespace offpath::session
