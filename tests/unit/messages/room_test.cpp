// SPDX-License-Identifier: BSD-3-Clause
// Senders, a receiver, and the words between them, which take their time: random steps against a model of the memory. No byte
// has two payloads, none changes before it was taken out, and all memory comes back.
#include "client/heap.hpp"
#include "mpi/messages/granted.hpp"
#include "mpi/messages/ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace offpath::mpi {
namespace {

constexpr uint64_t kPage = 4096, kAll = 16 * kPage, kSmall = 2 * kRingUnit;
constexpr int kSenders = 3, kSteps = 2'000;

std::byte memory[2 * kAll];

class Room {
 public:
  explicit Room(uint32_t seed) : random_(seed) {
    std::fill(std::begin(memory), std::end(memory), std::byte{});
    // Also where numbers of regions begin anew in words.
    if (seed % 2 == 0) {
      for (Peer& peer : peers_) age(peer);
    }
    early_ = seed % 3 == 0 ? kPage : 0;
    for (Peer& peer : peers_) {
      if (early_ != 0) grant(peer, early_);
    }
  }

  void step() {
    if (below(400) == 0) return leave();
    Peer& peer = peers_[below(kSenders)];
    switch (below(8)) {
      case 0:
      case 1:
        send(peer);
        break;
      case 2:
        if (!peer.under_way.empty()) put(peer.under_way[below(peer.under_way.size())]);
        break;
      case 3:
        if (!peer.under_way.empty()) receive(peer, below(peer.under_way.size()));
        break;
      case 4:
        if (peer.natives > 0) consider(peer);
        break;
      case 5:
        if (below(20) == 0) tidy(peer);
        break;
      default:
        hear(peer);
    }
  }

  // Everything arrives, and nothing more is sent.
  void end() {
    for (int round = 0; round < 12; ++round) {
      for (Peer& peer : peers_) {
        while (!peer.under_way.empty()) receive(peer, 0);
        for (int word = 0; word < 4 * kSteps && !(peer.grants.empty() && peer.lefts.empty()); ++word) hear(peer);
        take_grant(peer);
        while (!peer.lefts.empty()) hear(peer);
        tidy(peer);
      }
    }
    uint64_t still = 0;
    for (Peer& peer : peers_) {
      EXPECT_TRUE(peer.granted.is_heard()) << "it would never be granted anything again";
      still += pages(peer.granted.newest() == nullptr ? 0 : peer.granted.newest()->bytes);
      EXPECT_TRUE(peer.granted.newest() == nullptr || peer.granted.newest()->used == 0);
    }
    EXPECT_EQ(left_ + still, kAll);
    EXPECT_TRUE(std::all_of(std::begin(memory), std::end(memory), [](std::byte b) { return b == std::byte{}; }));
    EXPECT_GT(sent_, 0);
    EXPECT_GT(given_back_, 0);
  }

 private:
  struct Payload {
    uint64_t region, begin, end, offset, bytes;
    std::byte* at;
    std::byte mark;
    bool written = false;
  };
  struct Grant {
    uint64_t number, bytes;
    std::byte* address;
  };
  struct Peer {
    // As a sender.
    uint64_t region = 0, before = 0, wished = 0;
    std::byte* address = nullptr;
    RingAllocator ring;
    std::vector<Payload> under_way;
    int natives = 0;
    // Words on their way, and the last ones that came.
    std::deque<Grant> grants;
    std::deque<uint64_t> takens, lefts, wishes;
    Grant grant{};
    uint64_t taken = 0, left = 0, wish = 0;
    // The receiver's.
    Granted granted;
  };

  size_t below(size_t most) { return random_() % most; }
  static uint64_t pages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

  void age(Peer& peer) {
    const uint64_t last = 65'534 - below(3);
    for (peer.region = 1; peer.region <= last; ++peer.region) {
      peer.granted.add(memory, kPage);
      peer.granted.note_left(left_word(peer.region, peer.region - 1, RingAllocator()));
      peer.granted.take_over();
    }
    peer.granted.note_left(RingWord::of(--peer.region, 0));
    peer.granted.leave_window();
    peer.granted.note_past({});
    peer.granted.take_over();
  }

  // All go on with another window, of whose words none is on its way yet. What was sent stays so.
  void leave() {
    for (Peer& peer : peers_) {
      peer.grants.clear();
      peer.takens.clear();
      peer.lefts.clear();
      peer.wishes.clear();
      peer.grant = {};
      peer.taken = peer.left = peer.wish = peer.wished = 0;
      peer.granted.leave_window();
      peer.granted.note_past({peer.region, std::exchange(peer.ring, RingAllocator()).head(), peer.before});
      if (early_ != 0) grant(peer, early_);
    }
  }

  template <typename Word>
  void arrive(std::deque<Word>& words, Word* into) {
    for (size_t count = 1 + below(3); count > 0 && !words.empty(); --count) {
      *into = words.front();
      words.pop_front();
    }
  }
  void hear(Peer& peer) {
    switch (below(4)) {
      case 0:
        arrive(peer.grants, &peer.grant);
        break;
      case 1:
        arrive(peer.takens, &peer.taken);
        break;
      case 2:
        arrive(peer.lefts, &peer.left);
        break;
      default:
        arrive(peer.wishes, &peer.wish);
    }
  }

  void take_grant(Peer& peer) {
    if (peer.grant.number <= peer.region) return;
    peer.lefts.push_back(left_word(peer.grant.number, peer.region, peer.ring));
    peer.before = left_position(peer.grant.number, peer.region, peer.ring);
    peer.region = peer.grant.number;
    peer.address = peer.grant.address;
    peer.ring = RingAllocator(peer.grant.bytes);
  }
  void send(Peer& peer) {
    take_grant(peer);
    const uint64_t bytes = 1 + below(below(16) == 0 ? 6 * kPage : kPage / 3);
    const uint64_t position =
        RingWord::is_of(peer.taken, peer.region) ? RingWord::position_of(peer.taken, peer.ring.tail()) : 0;
    const auto stretch = peer.ring.allocate(bytes, position);
    if (!stretch) {
      const uint64_t wanted = peer.ring.wanted(bytes, position);
      if (wanted > peer.wished) peer.wishes.push_back(peer.wished = wanted);
      ++peer.natives;
      return;
    }
    if (below(16) == 0) return peer.ring.undo(*stretch);
    Payload payload{peer.region,
                    stretch->begin,
                    stretch->end,
                    stretch->offset,
                    bytes,
                    peer.address + stretch->offset,
                    static_cast<std::byte>(1 + ++sent_ % 255)};
    ASSERT_LE(stretch->offset + bytes + kSignalBytes, peer.ring.bytes());
    for (const Peer& other : peers_) {
      for (const Payload& one : other.under_way) {
        ASSERT_TRUE(payload.at + bytes + kSignalBytes <= one.at || one.at + one.bytes + kSignalBytes <= payload.at);
      }
    }
    peer.under_way.push_back(payload);
  }

  void put(Payload& payload) {
    std::fill_n(payload.at, payload.bytes + kSignalBytes, payload.mark);
    payload.written = true;
  }
  void receive(Peer& peer, size_t which) {
    Payload& payload = peer.under_way[which];
    Granted::Region* const region = peer.granted.find(payload.region);
    ASSERT_NE(region, nullptr);
    ASSERT_EQ(region->memory + payload.offset, payload.at);
    region->used = std::max(region->used, payload.offset + payload.bytes + kSignalBytes);
    if (!payload.written) put(payload);
    ASSERT_EQ(std::count(payload.at, payload.at + payload.bytes + kSignalBytes, payload.mark),
              static_cast<std::ptrdiff_t>(payload.bytes + kSignalBytes));
    if (region->released.release(payload.begin, payload.end) && peer.granted.is_used(payload.region)) {
      peer.takens.push_back(RingWord::of(payload.region, region->released.taken()));
    }
    peer.under_way.erase(peer.under_way.begin() + static_cast<std::ptrdiff_t>(which));
  }

  bool grant(Peer& peer, uint64_t bytes) {
    bytes = bytes / kRingUnit * kRingUnit;
    const auto offset = pages(bytes) <= left_ ? heap_.allocate(bytes) : std::nullopt;
    if (!offset) return false;
    left_ -= pages(bytes);
    peer.grants.push_back({peer.granted.next(), bytes, memory + *offset});
    peer.granted.add(memory + *offset, bytes);
    return true;
  }
  void gather(Peer& peer) {
    peer.granted.note_left(peer.left);
    while (const auto over = peer.granted.take_over()) {
      const uint64_t length = heap_.release(static_cast<uint64_t>(over->memory - memory));
      std::fill_n(over->memory, pages(over->used), std::byte{});
      ASSERT_EQ(std::count(over->memory, over->memory + length, std::byte{}), static_cast<std::ptrdiff_t>(length));
      for (const Payload& one : peer.under_way) {
        ASSERT_TRUE(one.at < over->memory || one.at >= over->memory + length) << "still on its way";
      }
      left_ += length;
      ++given_back_;
    }
  }
  void consider(Peer& peer) {
    --peer.natives;
    if (peer.wish == 0) return;
    gather(peer);
    if (!peer.granted.is_heard()) return;
    const Granted::Region* const newest = peer.granted.newest();
    const uint64_t needed = ring_bytes(peer.wish), has = newest == nullptr ? 0 : newest->bytes;
    const uint64_t left = Granted::free_bytes(left_, kSmall);
    if (needed <= has) return;
    if (needed <= left && grant(peer, std::min(4 * needed, std::max(left / 2, needed)))) return;
    if (needed <= left + has && has > kSmall && grant(peer, kSmall)) return;
    if (has < early_ && early_ <= left) grant(peer, early_);
  }
  void tidy(Peer& peer) {
    take_grant(peer);
    gather(peer);
    const Granted::Region* const newest = peer.granted.newest();
    if (newest == nullptr || newest->used == 0 || !peer.granted.is_heard()) return;
    const uint64_t bytes = std::min(newest->bytes, std::max(early_, 2 * newest->used));
    if (!grant(peer, bytes) && left_ >= kSmall) grant(peer, std::min(bytes, left_));
  }

  std::mt19937 random_;
  client::Heap heap_{2 * kAll};
  uint64_t left_ = kAll, early_ = 0;
  Peer peers_[kSenders];
  int sent_ = 0, given_back_ = 0;
};

TEST(Room, NoByteIsLostOrGivenToTwo) {
  for (uint32_t seed = 1; seed <= 150 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Room room(seed);
    for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) room.step();
    room.end();
  }
}

}  // namespace
}  // namespace offpath::mpi
