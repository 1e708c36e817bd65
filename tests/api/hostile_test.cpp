// SPDX-License-Identifier: BSD-3-Clause
// Wrong attach messages, and a submission ring full of lies.
#include "hostile.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace offpath::testing {
namespace {

using base::Memfd;

TEST(HostileClient, WrongAttachMessagesAreRefused) {
  Job(1).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    const Segment segment;
    const Fd device(open("/dev/null", O_RDWR | O_CLOEXEC));
    const auto refused = [&](const AttachRequest& request, int fd, offpath_status_t expected) {
      const Answer answer = ask(p, &request, sizeof(request), fd);
      REQUIRE(answer.reply.has_value());
      REQUIRE_STATUS(static_cast<offpath_status_t>(answer.reply->status), expected);
      REQUIRE(answer.reply->text[0] != '\0' && answer.reply->address_bytes == 0);
      check_honest(p, team);
    };
    AttachRequest request = good_request(p);
    request.token[31] ^= 1;
    refused(request, segment.memory.fd(), OFFPATH_ERR_PERMISSION);
    memset(request.token, 0, sizeof(request.token));
    refused(request, segment.memory.fd(), OFFPATH_ERR_PERMISSION);
    request = good_request(p);
    request.version = kLinkVersion + 1;
    refused(request, segment.memory.fd(), OFFPATH_ERR_NO_SERVICE);
    request = good_request(p);
    refused(request, -1, OFFPATH_ERR_ARGUMENT);            // no segment
    refused(request, device.get(), OFFPATH_ERR_ARGUMENT);  // not a memory file
    request.segment_bytes = kSegmentBytes - 4096;
    refused(request, segment.memory.fd(), OFFPATH_ERR_ARGUMENT);
    const Memfd small = std::move(Memfd::create("test", 4096).value());
    request.segment_bytes = 4096;
    refused(request, small.fd(), OFFPATH_ERR_ARGUMENT);
    const Fd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(ftruncate(unsealed.get(), kSegmentBytes) == 0);
    refused(good_request(p), unsealed.get(), OFFPATH_ERR_ARGUMENT);
    const Segment wrong;
    wrong.header().arena_offset = 0;
    refused(good_request(p), wrong.memory.fd(), OFFPATH_ERR_ARGUMENT);
    const Segment other;
    other.header().probe_value = 1;
    refused(good_request(p), other.memory.fd(), OFFPATH_ERR_PERMISSION);
    other.header().probe_address = 8;
    refused(good_request(p), other.memory.fd(), OFFPATH_ERR_MEMORY_FAULT);
    for (const size_t bytes : {size_t{1}, sizeof(request) - 1}) ask(p, &request, bytes, -1);
    uint8_t longer[200] = {};
    ask(p, longer, sizeof(longer), -1);
    connect_to(socket_path(p.folder, p.shared.token)).value().reset();  // comes and says nothing
    check_honest(p, team);
  });
}

TEST(HostileClient, WildRingIndex) {
  run_liar([](const Segment& segment, const AttachReply&, int socket) {
    segment.submit(0xFFFFFF00);
    ring(socket);
  });
}

TEST(HostileClient, OverrunRing) {
  run_liar([](const Segment& segment, const AttachReply&, int socket) {
    segment.header().submitted.store(0x80000000);
    ring(socket);
  });
}

TEST(HostileClient, UnknownKindsAndTeams) {
  run_liar([](const Segment& segment, const AttachReply&, int socket) {
    for (const uint32_t kind : {0U, 3U, 4U, 5U, 77U, 0xFFFFFFFFU}) {
      post_slot(segment, 3, static_cast<OpKind>(kind), socket);
      REQUIRE(segment.slot(3).status == OFFPATH_ERR_ARGUMENT);
    }
    post_slot(segment, 4, OpKind::team_create, socket);  // the record is all zero
    REQUIRE(segment.slot(4).status == OFFPATH_ERR_ARGUMENT);
    post_slot(segment, 5, OpKind::team_destroy, socket);
  });
}

}  // namespace
}  // namespace offpath::testing
