// SPDX-License-Identifier: BSD-3-Clause
// Files whose words and records in the session segment lie. The service refuses or fails them, and goes on.
#include "hostile.hpp"

#include "files/transfer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <random>

namespace offpath::testing {
namespace {

class Liar {
 public:
  Liar(const Segment& segment, int socket) : segment_(segment), socket_(socket) {}

  void pass(uint32_t number, int descriptor) {
    const FileMessage message{kFile, {}, number};
    REQUIRE(send_message(socket_, &message, sizeof(message), descriptor).ok());
  }
  Slot& begin(OpKind kind, uint64_t record, uint64_t address = 0) {
    const uint32_t index = next_++ % 512;
    Slot& slot = segment_.slot(index);
    slot.kind = static_cast<uint32_t>(kind);
    slot.record = record;
    slot.address = address;
    slot.status = OFFPATH_OK;
    slot.state.store(static_cast<uint32_t>(SlotState::posted));
    segment_.submit(index);
    ring(socket_);
    return slot;
  }
  static offpath_status_t end_of(const Slot& slot) {
    REQUIRE(eventually([&] { return slot.state.load() == static_cast<uint32_t>(SlotState::done); }));
    return base::known_code(slot.status);
  }
  offpath_status_t post(OpKind kind, uint64_t record, uint64_t address = 0) {
    return end_of(begin(kind, record, address));
  }
  offpath_status_t post(OpKind kind, const files::Transfer& transfer) {
    segment_.write(kArenaOffset + kRecordAt, files::encode(transfer));
    return post(kind, kArenaOffset + kRecordAt);
  }
  uint32_t next() const { return next_ % 512; }

 private:
  const Segment& segment_;
  const int socket_;
  uint32_t next_ = 1;
};

files::Transfer some_transfer() {
  static uint8_t bytes[4096];
  files::Transfer out;
  out.file = 3;
  out.memory = {0, 0, reinterpret_cast<uint64_t>(bytes), 96, 1, 0};
  out.offset = 100;
  out.skip = 8;
  out.layout = 2;
  out.layouts = {{16, 32, {{0, 8}, {8, 8}}}, {24, 64, {{0, 8}, {16, 16}}}};
  return out;
}

TEST(HostileClient, FilesThatLie) {
  run_liar([](const Segment& segment, const AttachReply&, int socket) {
    Liar liar(segment, socket);
    const int file = memfd_create("file", MFD_CLOEXEC);
    // Before any file is there, and of numbers that none has.
    REQUIRE(liar.post(OpKind::file_write, some_transfer()) == OFFPATH_ERR_ARGUMENT);
    REQUIRE(liar.post(OpKind::file_close, 0, UINT64_MAX) == OFFPATH_OK);
    for (const uint32_t number : {files::kMaxFiles, UINT32_MAX}) {
      liar.pass(number, file);
      REQUIRE(liar.post(OpKind::file_open, 0, number) == OFFPATH_ERR_ARGUMENT);
    }
    // Twice, no descriptor, one of no file; the descriptor last.
    Slot& awaited = liar.begin(OpKind::file_open, 0, 5);
    REQUIRE(liar.post(OpKind::file_open, 0, 5) == OFFPATH_ERR_ARGUMENT);
    liar.pass(5, -1);
    REQUIRE(Liar::end_of(awaited) == OFFPATH_ERR_NO_MEMORY);
    liar.pass(5, socket);
    REQUIRE(liar.post(OpKind::file_open, 0, 5) == OFFPATH_ERR_ARGUMENT);
    for (int round = 0; round < 3; ++round) liar.pass(3, file);
    REQUIRE(liar.post(OpKind::file_open, 0, 3) == OFFPATH_OK);
    REQUIRE(liar.post(OpKind::file_write, some_transfer()) == OFFPATH_OK);
    for (const uint64_t wild : {uint64_t{0}, kSegmentBytes - 8, uint64_t{kSegmentBytes}, UINT64_MAX - 16}) {
      for (const OpKind kind : {OpKind::file_write, OpKind::file_read})
        REQUIRE(liar.post(kind, wild) == OFFPATH_ERR_ARGUMENT);
    }
    files::Transfer own = some_transfer();
    own.after = {liar.next()};
    REQUIRE(liar.post(OpKind::file_read, own) == OFFPATH_ERR_ARGUMENT);
    own.after = {kSlotCount};
    REQUIRE(liar.post(OpKind::file_read, own) == OFFPATH_ERR_ARGUMENT);
    // A word of it at a time.
    std::mt19937_64 random(7);
    const auto good = files::encode(some_transfer());
    for (size_t at = sizeof(files::ResultRecord); at + 4 <= good.size(); at += 4) {
      for (const uint32_t wild : {UINT32_MAX, 0x80000001U, static_cast<uint32_t>(random())}) {
        segment.write(kArenaOffset + kRecordAt, good);
        segment.at<uint32_t>(kArenaOffset + kRecordAt + at) = wild;
        // A read: what is written to a file that is this long would fill memory.
        [[maybe_unused]] const auto status = liar.post(OpKind::file_read, kArenaOffset + kRecordAt);
      }
    }
    // Slots that are used twice, all at once, while files are closed and come again.
    segment.write(kArenaOffset + kRecordAt, good);
    for (int i = 0; i < 2000; ++i) {
      liar.begin(i % 2 == 0 ? OpKind::file_write : OpKind::file_read, kArenaOffset + kRecordAt);
      if (i % 50 != 0) continue;
      liar.begin(OpKind::file_close, 0, 3);
      liar.pass(3, file);
      liar.begin(OpKind::file_open, 0, 3);
    }
    close(file);
  });
}

// Its transfers are under way.
TEST(HostileClient, GoesWhileItWrites) {
  run_liar([](const Segment& segment, const AttachReply&, int socket) {
    Liar liar(segment, socket);
    const int file = memfd_create("file", MFD_CLOEXEC);
    liar.pass(3, file);
    REQUIRE(liar.post(OpKind::file_open, 0, 3) == OFFPATH_OK);
    static std::vector<uint8_t> bytes(16 << 20, 3);
    files::Transfer transfer;
    transfer.file = 3;
    transfer.memory = {0, 0, reinterpret_cast<uint64_t>(bytes.data()), bytes.size(), 0, 0};
    segment.write(kArenaOffset + kRecordAt, files::encode(transfer));
    for (int i = 0; i < 8; ++i) liar.begin(OpKind::file_write, kArenaOffset + kRecordAt);
    close(file);
  });
}

}  // namespace
}  // namespace offpath::testing
