// SPDX-License-Identifier: BSD-3-Clause
// Windows and one-sided operations whose records in the session segment are lies: nothing outside a window is touched,
// and the service goes on.
#include "../unit/remote/body.hpp"
#include "hostile.hpp"

#include <algorithm>
#include <random>

namespace offpath::testing {
namespace {

constexpr uint64_t kWindowAt = kArenaOffset + 32768;
constexpr uint64_t kGuard = 0x1122334455667788;
constexpr size_t kWords = 64;  // of the window, in the middle

struct Memory {
  uint64_t words[3 * kWords];
  Memory() { std::fill(std::begin(words), std::end(words), kGuard); }
  uint64_t window() const { return reinterpret_cast<uint64_t>(words + kWords); }
  bool guards_stand() const {
    const auto stands = [](uint64_t word) { return word == kGuard; };
    return std::all_of(words, words + kWords, stands) && std::all_of(words + 2 * kWords, words + 3 * kWords, stands);
  }
};

// A one-sided operation as its record says it, and what is then written over bytes of what the target gets.
struct Remote : remote::testing::Raw {
  remote::testing::Body body;
  std::vector<std::pair<size_t, uint8_t>> bytes;
};
constexpr size_t kKindAt = 32, kOperatorAt = 33, kElementAt = 34;

std::vector<uint8_t> encode(const Remote& remote) {
  remote::testing::Raw raw = remote;
  raw.wanted = encode(remote.body);
  for (const auto& [at, byte] : remote.bytes) raw.wanted[at] = byte;
  return encode(raw);
}

// A liar with a team of two, of which it is the first and nobody the second, and a window.
class Liar {
 public:
  Liar(const Segment& segment, const AttachReply& reply, int socket) : segment_(segment), socket_(socket) {
    make_team(segment, reply, socket, 2);
  }
  WindowRecord& window(uint64_t at = kWindowAt) const { return segment_.at<WindowRecord>(at); }
  int32_t command(OpKind kind, uint64_t at = kWindowAt, uint64_t address = 0, uint64_t bytes = 0) const {
    segment_.slot(1).window = at;
    segment_.slot(1).address = address;
    segment_.slot(1).bytes = bytes;
    return post(1, kind);
  }
  void open(const Memory& memory) const {
    window().id = 7;
    window().base = memory.window();
    window().bytes = kWords * 8;
    REQUIRE(command(OpKind::window_open) == OFFPATH_OK);
  }
  void write(uint32_t index, const Remote& arguments) {
    segment_.slot(index).record = kArenaOffset + kRecordAt;
    segment_.slot(index).window = kWindowAt;
    segment_.slot(index).sequence = begun_;
    segment_.write(kArenaOffset + kRecordAt, encode(arguments));
  }
  int32_t remote(const Remote& arguments, uint64_t record = kArenaOffset + kRecordAt) {
    write(2, arguments);
    segment_.slot(2).record = record;
    const int32_t status = post(2, OpKind::remote);
    ++begun_;
    return status;
  }
  // Posts and waits until it is done.
  int32_t post(uint32_t index, OpKind kind) const {
    post_slot(segment_, index, kind, socket_);
    REQUIRE(eventually([&] { return segment_.slot(index).state == static_cast<uint32_t>(SlotState::done); }));
    return segment_.slot(index).status;
  }
  const Segment& segment() const { return segment_; }
  int socket() const { return socket_; }

 private:
  const Segment& segment_;
  int socket_;
  uint64_t begun_ = 0;
};

Remote put_to_self() {
  Remote out{};
  out.body.window = 7;
  out.body.bytes = 8;
  out.body.data = {1, 2, 3, 4, 5, 6, 7, 8};
  return out;
}

template <typename Body>
void run_remote_liar(const Body& body) {
  run_liar([&](const Segment& segment, const AttachReply& reply, int socket) {
    Liar liar(segment, reply, socket);
    Memory memory;
    body(liar, memory);
    REQUIRE(memory.guards_stand());
  });
}

TEST(HostileClient, WindowsThatAreNone) {
  run_remote_liar([](Liar& liar, Memory& memory) {
    for (const uint64_t wild : {uint64_t{0}, uint64_t{kArenaOffset - 128}, kWindowAt + 8, kSegmentBytes - 64,
                                uint64_t{kSegmentBytes}, UINT64_MAX - 63}) {
      for (const OpKind kind :
           {OpKind::window_open, OpKind::window_close, OpKind::window_attach, OpKind::window_detach, OpKind::remote}) {
        REQUIRE(liar.command(kind, wild, memory.window(), 8) == OFFPATH_ERR_ARGUMENT);
      }
    }
    liar.window().base = UINT64_MAX - 7, liar.window().bytes = 16;
    REQUIRE(liar.command(OpKind::window_open) == OFFPATH_ERR_ARGUMENT);
    liar.window().flags = kDynamicWindow;
    REQUIRE(liar.command(OpKind::window_open) == OFFPATH_ERR_ARGUMENT);
    liar.window().flags = 0;
    liar.open(memory);
    REQUIRE(liar.command(OpKind::window_open) == OFFPATH_ERR_ARGUMENT);  // the record is in use
    liar.window(kWindowAt + 128).id = 7;
    REQUIRE(liar.command(OpKind::window_open, kWindowAt + 128) == OFFPATH_ERR_ARGUMENT);  // the id is in use
    REQUIRE(liar.command(OpKind::window_attach, kWindowAt, memory.window(), 8) == OFFPATH_ERR_ARGUMENT);
    REQUIRE(liar.command(OpKind::window_detach, kWindowAt, memory.window()) == OFFPATH_ERR_ARGUMENT);
    // The service has its own idea of the window from here on.
    liar.window().base = 0, liar.window().bytes = UINT64_MAX, liar.window().id = 8;
    Remote put = put_to_self();
    put.body.offset = kWords * 8;
    REQUIRE(liar.remote(put) == OFFPATH_ERR_RANGE);
    put.body.offset = 8;
    REQUIRE(liar.remote(put) == OFFPATH_OK);
    put.body.window = 8;  // what the record says by now
    REQUIRE(liar.remote(put) == OFFPATH_ERR_ARGUMENT);
    REQUIRE(memory.words[kWords + 1] == 0x0807060504030201);
    REQUIRE(liar.command(OpKind::window_close) == OFFPATH_OK);
    REQUIRE(liar.command(OpKind::remote) == OFFPATH_ERR_ARGUMENT);
    liar.open(memory);
    liar.post(0, OpKind::team_destroy);  // takes its windows with it
    REQUIRE(liar.command(OpKind::window_close) == OFFPATH_ERR_ARGUMENT);
  });
}

TEST(HostileClient, ImpossibleRemotes) {
  run_remote_liar([](Liar& liar, Memory& memory) {
    liar.open(memory);
    const auto ends_with = [&](offpath_status_t status, auto change) {
      Remote arguments = put_to_self();
      change(arguments);
      REQUIRE(liar.remote(arguments) == status);
    };
    const auto refuse = [&](auto change) { ends_with(OFFPATH_ERR_ARGUMENT, change); };
    for (const uint8_t wild : {0, 9, 255}) refuse([&](auto& a) { a.bytes = {{kKindAt, wild}}; });
    for (const uint32_t wild : {2U, 77U, UINT32_MAX}) refuse([&](auto& a) { a.head.target = wild; });
    for (const uint8_t wild : {1, 15, 255}) refuse([&](auto& a) { a.bytes = {{kOperatorAt, wild}}; });
    for (const uint8_t wild : {1, 23, 255}) refuse([&](auto& a) { a.bytes = {{kElementAt, wild}}; });
    for (const uint64_t wild : {uint64_t{7}, uint64_t{9}, uint64_t{1} << 46, UINT64_MAX}) {
      refuse([&](auto& a) { a.body.bytes = wild; });
    }
    for (const offpath_remote_kind_t kind : {OFFPATH_ACCUMULATE, OFFPATH_GET_ACCUMULATE, OFFPATH_COMPARE_AND_SWAP}) {
      refuse([&](auto& a) { a.body.kind = kind; });
      refuse([&](auto& a) { a.body.kind = kind, a.body.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_FLONG}; });
      refuse([&](auto& a) { a.body.kind = kind, a.body.reduction = {OFFPATH_OP_MINLOC, OFFPATH_ELEMENT_I8}; });
    }
    refuse([](auto& a) { a.layouts = {{0, 1, 1, 0}}, a.ranges = {{0, 0}}; });
    refuse([](auto& a) { a.layouts = {{9, 1, 1, 0}}, a.ranges = {{0, 8}}; });
    refuse([](auto& a) { a.layouts = {{8, 1, 2, 0}}, a.ranges = {{0, 8}}; });
    const auto lies = [](auto& a, memory::Layout layout) {
      a.body.contiguous = false;
      a.body.layout = std::move(layout);
    };
    refuse([&](auto& a) { lies(a, {9, 1, {{0, 8}}}); });
    refuse([&](auto& a) { lies(a, {129, 1, std::vector<memory::Range>(129, {0, 1})}); });
    for (const uint64_t wild : {uint64_t{kWords * 8}, uint64_t{kWords * 8 - 7}, UINT64_MAX, uint64_t{1} << 63,
                                uint64_t{0} - memory.window()}) {
      ends_with(OFFPATH_ERR_RANGE, [&](auto& a) { a.body.offset = wild; });
    }
    for (const int64_t wild : {INT64_MIN, INT64_MAX, int64_t{-1}, int64_t{kWords * 8 - 7}}) {
      ends_with(OFFPATH_ERR_RANGE, [&](auto& a) { lies(a, {8, 0, {{wild, 8}}}); });
    }
    for (const int64_t wild : {INT64_MIN, INT64_MAX, int64_t{kWords * 8 - 3}, int64_t{-1}}) {
      ends_with(OFFPATH_ERR_RANGE, [&](auto& a) { lies(a, {4, wild, {{0, 4}}}); });
    }
    // Memory of the client that is none.
    ends_with(OFFPATH_ERR_MEMORY_FAULT, [](auto& a) { a.body.data.clear(), a.head.send = {0, 0, 8, 8, 0, 0}; });
    ends_with(OFFPATH_ERR_MEMORY_FAULT,
              [](auto& a) { a.body.data.clear(), a.body.kind = OFFPATH_GET, a.head.result = {0, 0, 8, 8, 0, 0}; });
    refuse([](auto& a) { a.body.data.clear(), a.head.send = {0, 0, UINT64_MAX - 3, 8, 0, 0}; });
    for (const uint64_t wild : {uint64_t{0}, kSegmentBytes - 8, UINT64_MAX - 16}) {
      REQUIRE(liar.remote(put_to_self(), wild) == OFFPATH_ERR_ARGUMENT);
    }
  });
}

TEST(HostileClient, SlotsAndNumbersOfRemotes) {
  run_remote_liar([](Liar& liar, Memory& memory) {
    liar.open(memory);
    for (const uint64_t wild : {uint64_t{1}, uint64_t{77}, UINT64_MAX}) {
      liar.write(2, put_to_self());
      liar.segment().slot(2).sequence = wild;
      REQUIRE(liar.post(2, OpKind::remote) == OFFPATH_ERR_ARGUMENT);
    }
    REQUIRE(liar.remote(put_to_self()) == OFFPATH_OK);
    REQUIRE(liar.window().completed == 1);
    // One for the member that is not there stays; its slot may not be used again.
    Remote endless = put_to_self();
    endless.head.target = 1;
    liar.write(3, endless);
    post_slot(liar.segment(), 3, OpKind::remote, liar.socket());
    REQUIRE(liar.segment().slot(3).state == static_cast<uint32_t>(SlotState::active));
    liar.segment().slot(3).sequence = 2;
    REQUIRE(liar.post(3, OpKind::remote) == OFFPATH_ERR_ARGUMENT);
    // Counters that lie elsewhere now do no harm.
    memset(liar.segment().memory.data() + kWindowAt, 0xFF, sizeof(WindowRecord));
    REQUIRE(liar.command(OpKind::window_close) == OFFPATH_OK);
  });
}

TEST(HostileClient, RandomRemotes) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  run_remote_liar([&](Liar& liar, Memory& memory) {
    liar.open(memory);
    std::mt19937_64 random(seed);
    const auto number = [&]() -> uint64_t {
      switch (random() % 4) {
        case 0:
          return random() % 64;
        case 1:
          return random() % (kWords * 9);
        case 2:
          return uint64_t{0} - random() % 64;
        default:
          return random();
      }
    };
    alignas(16) static uint8_t buffer[8192];
    for (int round = 0; round < 2000; ++round) {
      Remote a{};
      a.body.window = 7;
      a.body.kind = static_cast<offpath_remote_kind_t>(1 + random() % 8);
      if (remote::accumulates(a.body.kind)) {
        a.bytes = {{kOperatorAt, static_cast<uint8_t>(random() % 15)},
                   {kElementAt, static_cast<uint8_t>(random() % 23)}};
      }
      a.body.offset = number();
      a.body.bytes = random() % 3 == 0 ? number() : random() % 600;
      const auto address = reinterpret_cast<uint64_t>(buffer);
      a.head.send = {0, 0, address, a.body.bytes, 0, 0};
      a.head.result = {0, 0, address, 0, 0, 0};
      if (random() % 2 == 0) {
        memory::Layout layout{0, static_cast<int64_t>(number()), {}};
        for (uint64_t left = 1 + random() % 3; left > 0; --left) {
          layout.ranges.push_back({static_cast<int64_t>(number()), random() % 20});
          layout.size_bytes += layout.ranges.back().bytes;
        }
        a.body.contiguous = false;
        a.body.layout = std::move(layout);
      }
      if (a.body.bytes > sizeof(buffer) && a.body.kind != OFFPATH_PUT) continue;  // would fill our own memory
      const int32_t status = liar.remote(a);
      REQUIRE(status <= OFFPATH_OK && status >= OFFPATH_ERR_RANGE);
      REQUIRE(memory.guards_stand());
    }
  });
}

}  // namespace
}  // namespace offpath::testing
