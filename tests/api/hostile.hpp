// SPDX-License-Identifier: BSD-3-Clause
// A client that does not use our library: what it takes to attach and to lie. The service refuses it, goes on serving
// the others, sleeps when idle, and still ends when they have gone.
#pragma once

#include "../unit/session/client_segment.hpp"
#include "job.hpp"

#include "session/link.hpp"

#include <cstring>
#include <optional>

namespace offpath::testing {

using base::Fd;
using namespace session;

inline uint64_t probe = 0x5157;
inline constexpr uint64_t kOpenAt = 65536, kRecordAt = 131072;  // in the arena

// One that may be attached.
struct Segment : session::testing::ClientSegment {
  Segment() {
    header().probe_address = reinterpret_cast<uint64_t>(&probe);
    header().probe_value = probe;
  }
};

inline AttachRequest good_request(const Process& p) {
  AttachRequest request{};
  request.version = kLinkVersion;
  request.segment_bytes = kSegmentBytes;
  memcpy(request.token, p.shared.token, sizeof(request.token));
  return request;
}

struct Answer {
  Fd socket;
  std::optional<AttachReply> reply;
};

inline Answer ask(const Process& p, const void* request, size_t bytes, int fd) {
  Answer out{std::move(connect_to(socket_path(p.folder, p.shared.token)).value()), {}};
  REQUIRE(send_message(out.socket.get(), request, bytes, fd).ok());
  AttachReply reply{};
  if (receive_message(out.socket.get(), &reply, sizeof(reply), kPatienceSeconds * 1000).ok()) out.reply = reply;
  return out;
}

// An honest session that must keep working.
inline void check_honest(const Process& p, offpath_team_t* team) {
  uint8_t send[100], recv[100] = {};
  memset(send, 9, sizeof(send));
  p.complete([&](auto op) { return offpath_alltoall(team, send, recv, 100, op); });
  REQUIRE(memcmp(send, recv, 100) == 0);
}

// Attaches properly, then lets `lie` write what it likes.
template <typename Lie>
inline void run_liar(const Lie& lie) {
  Job(1).run_in_team([&](Process& p, offpath_session_t* session, offpath_team_t* team) {
    const Segment segment;
    const AttachRequest request = good_request(p);
    Answer answer = ask(p, &request, sizeof(request), segment.memory.fd());
    REQUIRE(answer.reply && answer.reply->status == OFFPATH_OK);
    lie(segment, *answer.reply, answer.socket.get());
    for (int i = 0; i < 20; ++i) check_honest(p, team);
    answer.socket.reset();
    for (int i = 0; i < 20; ++i) check_honest(p, team);
    REQUIRE(offpath_session_alive(session) == 1);
  });  // its end checks that the service ends
}

inline void ring(int socket) { REQUIRE(send_message(socket, &kDoorbell, 1).ok()); }

inline void post_slot(const Segment& segment, uint32_t index, OpKind kind, int socket) {
  Slot& slot = segment.slot(index);
  slot.kind = static_cast<uint32_t>(kind);
  slot.team = kArenaOffset;
  slot.open = kArenaOffset + kOpenAt;
  slot.state.store(static_cast<uint32_t>(SlotState::posted));
  segment.submit(index);
  ring(socket);
  REQUIRE(eventually([&] { return slot.state.load() != static_cast<uint32_t>(SlotState::posted); }));
}

inline void make_record(const Segment& segment, const AttachReply& reply, uint32_t size) {
  auto& record = segment.at<TeamRecord>(kArenaOffset);
  memset(record.id, 0x77, sizeof(record.id));
  record.rank = 0;
  record.size = size;
  record.address_stride = OFFPATH_ADDRESS_MAX_BYTES;
  record.addresses = kArenaOffset + 4096;
  record.addresses_count = size;
  record.address_of = kArenaOffset + 1024;
  record.lost = kArenaOffset + 2048;
  for (uint32_t i = 0; i < size; ++i) {
    memcpy(segment.memory.data() + kArenaOffset + 4096 + size_t{i} * OFFPATH_ADDRESS_MAX_BYTES, reply.address,
           reply.address_bytes);
    segment.at<uint32_t>(record.address_of + i * sizeof(i)) = i;
  }
}

// A team with its liar as every member.
inline void make_team(const Segment& segment, const AttachReply& reply, int socket, uint32_t size) {
  make_record(segment, reply, size);
  post_slot(segment, 0, OpKind::team_create, socket);
  REQUIRE(segment.slot(0).status == OFFPATH_OK);
}

}  // namespace offpath::testing
