// SPDX-License-Identifier: BSD-3-Clause
// A client that does not use our library: wrong attach messages, and a session segment full of lies. The service
// refuses it, goes on serving the others, sleeps when idle, and still ends when they have gone.
#include "job.hpp"

#include "base/memfd.hpp"
#include "session/layout.hpp"
#include "session/link.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <random>

namespace offpath::testing {
namespace {

using base::Fd;
using base::Memfd;
using namespace session;

uint64_t probe = 0x5157;

Memfd make_segment() {
  Memfd memory = std::move(Memfd::create("test", kSegmentBytes).value());
  auto& head = *reinterpret_cast<SegmentHeader*>(memory.data());
  head.magic = kMagic;
  head.version = session::kVersion;
  head.slot_count = kSlotCount;
  head.segment_bytes = kSegmentBytes;
  head.ring_offset = kRingOffset;
  head.slots_offset = kSlotsOffset;
  head.arena_offset = kArenaOffset;
  head.probe_address = reinterpret_cast<uint64_t>(&probe);
  head.probe_value = probe;
  return memory;
}

AttachRequest good_request(const Process& p) {
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

Answer ask(const Process& p, const void* request, size_t bytes, int fd) {
  Answer out{std::move(connect_to(socket_path(p.folder, p.shared.token)).value()), {}};
  REQUIRE(send_message(out.socket.get(), request, bytes, fd).ok());
  AttachReply reply{};
  if (receive_message(out.socket.get(), &reply, sizeof(reply), kPatienceSeconds * 1000).ok()) out.reply = reply;
  return out;
}

// An honest session that must keep working.
void check_honest(const Process& p, offpath_team_t* team) {
  uint8_t send[100], recv[100] = {};
  memset(send, 9, sizeof(send));
  offpath_op_t* op = nullptr;
  REQUIRE_STATUS(offpath_alltoall(team, send, recv, 100, &op), OFFPATH_OK);
  p.wait_ok(op);
  REQUIRE(memcmp(send, recv, 100) == 0);
  offpath_op_free(op);
}

TEST(HostileClient, WrongAttachMessagesAreRefused) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    const Memfd segment = make_segment();
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
    refused(request, segment.fd(), OFFPATH_ERR_PERMISSION);
    memset(request.token, 0, sizeof(request.token));
    refused(request, segment.fd(), OFFPATH_ERR_PERMISSION);
    request = good_request(p);
    request.version = 2;
    refused(request, segment.fd(), OFFPATH_ERR_NO_SERVICE);
    request = good_request(p);
    refused(request, -1, OFFPATH_ERR_ARGUMENT);            // no segment
    refused(request, device.get(), OFFPATH_ERR_ARGUMENT);  // not a memory file
    request.segment_bytes = kSegmentBytes - 4096;
    refused(request, segment.fd(), OFFPATH_ERR_ARGUMENT);
    const Memfd small = std::move(Memfd::create("test", 4096).value());
    request.segment_bytes = 4096;
    refused(request, small.fd(), OFFPATH_ERR_ARGUMENT);
    const Fd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(ftruncate(unsealed.get(), kSegmentBytes) == 0);
    refused(good_request(p), unsealed.get(), OFFPATH_ERR_ARGUMENT);
    const Memfd wrong = make_segment();
    reinterpret_cast<SegmentHeader*>(wrong.data())->arena_offset = 0;
    refused(good_request(p), wrong.fd(), OFFPATH_ERR_ARGUMENT);
    const Memfd other = make_segment();
    reinterpret_cast<SegmentHeader*>(other.data())->probe_value = 1;
    refused(good_request(p), other.fd(), OFFPATH_ERR_PERMISSION);
    reinterpret_cast<SegmentHeader*>(other.data())->probe_address = 8;
    refused(good_request(p), other.fd(), OFFPATH_ERR_MEMORY_FAULT);
    for (const size_t bytes : {size_t{1}, sizeof(request) - 1}) ask(p, &request, bytes, -1);
    uint8_t longer[200] = {};
    ask(p, longer, sizeof(longer), -1);
    connect_to(socket_path(p.folder, p.shared.token)).value().reset();  // comes and says nothing
    check_honest(p, team);
    offpath_session_detach(session);
  });
}

// Attaches properly, then lets `lie` write what it likes.
template <typename Lie>
void run_liar(const Lie& lie) {
  Job(1).run([&](Process& p) {
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    const Memfd segment = make_segment();
    const AttachRequest request = good_request(p);
    Answer answer = ask(p, &request, sizeof(request), segment.fd());
    REQUIRE(answer.reply && answer.reply->status == OFFPATH_OK);
    lie(segment, *answer.reply, answer.socket.get());
    for (int i = 0; i < 20; ++i) check_honest(p, team);
    answer.socket.reset();
    offpath_session_counters_t counters{};
    counters.struct_bytes = sizeof(counters);
    for (int i = 0; i < 20; ++i) check_honest(p, team);
    REQUIRE(offpath_session_alive(session) == 1);
    offpath_session_detach(session);
  });  // its end checks that the service ends
}

void submit(const Memfd& segment, uint32_t index) {
  auto& head = *reinterpret_cast<SegmentHeader*>(segment.data());
  const uint32_t position = head.submitted.load();
  reinterpret_cast<Atomic32*>(segment.data() + kRingOffset)[position % kSlotCount].store(index);
  head.submitted.store(position + 1);
}

void ring(int socket) { REQUIRE(send_message(socket, &kDoorbell, 1).ok()); }

Slot& slot_of(const Memfd& segment, uint32_t index) {
  return reinterpret_cast<Slot*>(segment.data() + kSlotsOffset)[index];
}

void post_slot(const Memfd& segment, uint32_t index, OpKind kind, int socket) {
  Slot& slot = slot_of(segment, index);
  slot.kind = static_cast<uint32_t>(kind);
  slot.team = kArenaOffset;
  slot.progress = kArenaOffset + 65536;
  slot.state.store(static_cast<uint32_t>(SlotState::posted));
  submit(segment, index);
  ring(socket);
  REQUIRE(eventually([&] { return slot.state.load() != static_cast<uint32_t>(SlotState::posted); }));
}

void make_record(const Memfd& segment, const AttachReply& reply, uint32_t size) {
  auto& record = *reinterpret_cast<TeamRecord*>(segment.data() + kArenaOffset);
  memset(record.id, 0x77, sizeof(record.id));
  record.rank = 0;
  record.size = size;
  record.address_stride = OFFPATH_ADDRESS_MAX_BYTES;
  record.addresses = kArenaOffset + 4096;
  record.lost = kArenaOffset + 2048;
  for (uint32_t i = 0; i < size; ++i) {
    memcpy(segment.data() + kArenaOffset + 4096 + size_t{i} * OFFPATH_ADDRESS_MAX_BYTES, reply.address,
           reply.address_bytes);
  }
}

TEST(HostileClient, WildRingIndex) {
  run_liar([](const Memfd& segment, const AttachReply&, int socket) {
    submit(segment, 0xFFFFFF00);
    ring(socket);
  });
}

TEST(HostileClient, OverrunRing) {
  run_liar([](const Memfd& segment, const AttachReply&, int socket) {
    reinterpret_cast<SegmentHeader*>(segment.data())->submitted.store(0x80000000);
    ring(socket);
  });
}

TEST(HostileClient, UnknownKindsAndTeams) {
  run_liar([](const Memfd& segment, const AttachReply&, int socket) {
    for (const uint32_t kind : {0U, 3U, 4U, 5U, 77U, 0xFFFFFFFFU}) {
      post_slot(segment, 3, static_cast<OpKind>(kind), socket);
      REQUIRE(slot_of(segment, 3).status == OFFPATH_ERR_ARGUMENT);
    }
    post_slot(segment, 4, OpKind::team_create, socket);  // the record is all zero
    REQUIRE(slot_of(segment, 4).status == OFFPATH_ERR_ARGUMENT);
    post_slot(segment, 5, OpKind::team_destroy, socket);
  });
}

TEST(HostileClient, SequencesOutOfOrder) {
  run_liar([](const Memfd& segment, const AttachReply& reply, int socket) {
    make_record(segment, reply, 2);
    post_slot(segment, 0, OpKind::team_create, socket);
    REQUIRE(slot_of(segment, 0).status == OFFPATH_OK);
    uint32_t index = 1;
    for (const uint64_t sequence : {uint64_t{0}, uint64_t{0}, uint64_t{7}, uint64_t{3}, UINT64_MAX, uint64_t{0}}) {
      Slot& slot = slot_of(segment, index);
      slot.sequence = sequence;
      slot.send = slot.recv = reinterpret_cast<uint64_t>(&probe);
      slot.block_bytes = 8;
      post_slot(segment, index++, OpKind::alltoall, socket);
    }
  });
}

TEST(HostileClient, MovingOffsetsWhileServed) {
  run_liar([](const Memfd& segment, const AttachReply& reply, int socket) {
    make_record(segment, reply, 2);
    post_slot(segment, 0, OpKind::team_create, socket);
    Slot& slot = slot_of(segment, 1);
    slot.send = slot.recv = reinterpret_cast<uint64_t>(&probe);
    slot.block_bytes = 8;
    post_slot(segment, 1, OpKind::alltoall, socket);
    slot.progress = UINT64_MAX - 1;
    slot.team = 12345;
    auto& record = *reinterpret_cast<TeamRecord*>(segment.data() + kArenaOffset);
    record.lost = UINT64_MAX - 1;
    record.size = UINT32_MAX;
    record.addresses = 1;
  });
}

TEST(HostileClient, RandomSegments) {
  run_liar([](const Memfd& segment, const AttachReply& reply, int socket) {
    std::mt19937_64 random(4);
    make_record(segment, reply, 3);
    post_slot(segment, 0, OpKind::team_create, socket);
    for (uint32_t i = 1; i < 900; ++i) {
      Slot& slot = slot_of(segment, i);
      auto* bytes = reinterpret_cast<uint8_t*>(&slot) + 12;
      for (size_t b = 0; b < sizeof(Slot) - 12; ++b) bytes[b] = random() % 3 == 0 ? static_cast<uint8_t>(random()) : 0;
      if (random() % 2 == 0) slot.arrays = kArenaOffset + random() % 100000;
      const uint64_t sequence = slot.sequence;
      post_slot(segment, i, static_cast<OpKind>(random() % 6), socket);
      slot.sequence = sequence;
      if (random() % 8 == 0) segment.data()[random() % 8192 + kArenaOffset] ^= 0x80;
    }
  });
}

}  // namespace
}  // namespace offpath::testing
