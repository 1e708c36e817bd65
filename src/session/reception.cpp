// SPDX-License-Identifier: BSD-3-Clause
#include "session/reception.hpp"

#include "session/doorman.hpp"

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

void turn_away(const Fd& socket, const Status& reason) {
  AttachRequest request{};
  [[maybe_unused]] const auto asked = receive_message(socket.get(), &request, sizeof(request), kAttachTimeoutMs);
  AttachReply reply{};
  reply.version = kLinkVersion;
  fill_refusal(reply, reason);
  [[maybe_unused]] const auto status = send_message(socket.get(), &reply, sizeof(reply));
}

void refuse_all(int listening, const Status& reason) {
  Doorman doorman;
  pollfd wait{listening, POLLIN, 0};
  while (poll(&wait, 1, kAttachTimeoutMs) > 0) {
    const Doorman::Guest guest = doorman.let_in(listening);
    if (guest.socket.valid()) turn_away(guest.socket, reason);
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

Result<SegmentView> open_segment(const Result<PeerCredentials>& credentials, const AttachRequest& request,
                                 Result<Fd>& segment_fd, const uint8_t (&token)[OFFPATH_TOKEN_BYTES]) {
  if (!segment_fd.ok()) return segment_fd.status();
  if (const Status status = check_client(credentials, request, token); !status.ok()) return status;
  auto segment = base::Memfd::adopt(std::move(segment_fd.value()), request.segment_bytes);
  if (!segment.ok()) return segment.status();
  segment->close_descriptor();  // there may be many clients
  return SegmentView::open(std::move(segment.value()));
}

}  // namespace offpath::session
