// SPDX-License-Identifier: BSD-3-Clause
// Tickets, which nothing else may be taken for, rings against a model, and regions.
#include "mpi/messages/granted.hpp"
#include "mpi/messages/ring.hpp"
#include "mpi/messages/ticket.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace offpath::mpi {
namespace {

constexpr Mark kMark = {0x123456789ABCDEF0, 2, 3, 0xFEDCBA9876543210};
constexpr Ticket kTicket = {7, 1 << 20, 3, 64, 4096, 128, 0xAB};

TEST(Ticket, IsReadAsItWasWritten) {
  const TicketBytes bytes = write_ticket(kMark, kTicket);
  const auto read = read_ticket(kMark, bytes.data());
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, kTicket);
}

TEST(Ticket, OtherBytesAreNone) {
  TicketBytes bytes = write_ticket(kMark, kTicket);
  for (size_t i = 0; i < kTicketBytes; ++i) {
    bytes[i] ^= std::byte{16};
    EXPECT_FALSE(read_ticket(kMark, bytes.data()));
    bytes[i] ^= std::byte{16};
  }
  EXPECT_TRUE(read_ticket(kMark, bytes.data()));
  Mark of_other_job = kMark;
  of_other_job[3] ^= 1;
  EXPECT_FALSE(read_ticket(of_other_job, bytes.data()));
}

TEST(Ticket, LengthSaysWhichSynchronousSendItIs) {
  for (uint64_t number = 0; number <= kSynchronous; ++number) {
    ASSERT_LE(ticket_length(number), sizeof(TicketBytes));
    EXPECT_EQ(synchronous_of(static_cast<int64_t>(ticket_length(number))), number);
  }
  EXPECT_FALSE(synchronous_of(static_cast<int64_t>(ticket_length(kSynchronous)) + 2 * kTicketUnit));
  for (const int64_t other : {-1, 0, 992, 1023, 1025, 1088, 1152, 2048}) EXPECT_FALSE(synchronous_of(other)) << other;
}

TEST(Ticket, SignalsDiffer) {
  std::vector<uint64_t> all;
  for (uint64_t from = 0; from < 8; ++from) {
    for (uint64_t to = 0; to < 8; ++to) {
      for (uint64_t number = 0; number < 64; ++number) all.push_back(signal_of(kMark, from, to, number));
    }
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

// No two payloads that are in the ring lie over each other, and all of the ring can be used again.
TEST(Ring, PayloadsDoNotOverlap) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    const uint64_t bytes = 64 * (4 + random() % 60);
    RingAllocator sender(bytes);
    RingReleaser receiver;
    struct Payload {
      RingAllocator::Stretch stretch;
      uint64_t bytes;
    };
    std::vector<Payload> inside;
    uint64_t taken = 0, allocated = 0;
    for (int step = 0; step < 3000; ++step) {
      const uint64_t payload = 1 + random() % (random() % 8 == 0 ? bytes - kSignalBytes : bytes / 2);
      if (random() % 2 == 0) {
        const auto stretch = sender.allocate(payload, taken);
        if (!stretch) continue;
        if (random() % 8 == 0) {
          sender.undo(*stretch);
          continue;
        }
        ++allocated;
        const uint64_t end = stretch->offset + payload + kSignalBytes;
        ASSERT_LE(end, bytes);
        ASSERT_EQ(end % kSignalBytes, 0u);
        for (const Payload& other : inside) {
          const uint64_t other_end = other.stretch.offset + other.bytes + kSignalBytes;
          ASSERT_TRUE(end <= other.stretch.offset || other_end <= stretch->offset) << "seed " << seed;
        }
        inside.push_back({*stretch, payload});
      } else if (!inside.empty()) {
        const size_t which = random() % inside.size();
        if (receiver.release(inside[which].stretch.begin, inside[which].stretch.end)) taken = receiver.taken();
        EXPECT_TRUE(receiver.was_released(inside[which].stretch.begin));
        inside.erase(inside.begin() + static_cast<std::ptrdiff_t>(which));
        for (const Payload& other : inside) ASSERT_FALSE(receiver.was_released(other.stretch.begin));
        if (inside.empty()) {
          EXPECT_EQ(receiver.taken(), taken);
        }
      }
    }
    EXPECT_GT(allocated, 100u);
    for (const Payload& left : inside) receiver.release(left.stretch.begin, left.stretch.end);
    EXPECT_TRUE(sender.allocate(bytes - kSignalBytes, receiver.taken())) << "all of an empty ring can be had";
  }
}

// So a ring takes as much memory as is under way at a time, however large it is.
TEST(Ring, AnEmptyOneBeginsAnew) {
  RingAllocator sender(1 << 20);
  RingReleaser receiver;
  for (int round = 0; round < 3000; ++round) {
    const auto first = sender.allocate(1000, receiver.taken()), second = sender.allocate(3000, receiver.taken());
    ASSERT_TRUE(first && second);
    ASSERT_LE(second->offset + 3000 + kSignalBytes, ring_bytes(1000) + ring_bytes(3000)) << round;
    receiver.release(second->begin, second->end);
    receiver.release(first->begin, first->end);
  }
  EXPECT_EQ(sender.head(), 3000 * (ring_bytes(1000) + ring_bytes(3000)))
      << "positions count what was sent, and no more";
}

// A stream of 10 GB/s without a second's rest has as many bytes in eight hours.
TEST(Ring, PositionsNeedNotFitIntoAWord) {
  constexpr uint64_t kPayload = (uint64_t{1} << 40) - kSignalBytes;
  RingAllocator sender(uint64_t{1} << 41);
  RingReleaser receiver;
  uint64_t taken = RingWord::of(3, 0);
  for (int round = 0; round < 1000; ++round) {
    ASSERT_TRUE(RingWord::is_of(taken, 3)) << round;
    const auto stretch = sender.allocate(kPayload, RingWord::position_of(taken, sender.tail()));
    ASSERT_TRUE(stretch) << round;
    if (round % 2 == 0) continue;  // two are under way
    receiver.release(stretch->begin, stretch->end);
    receiver.release(stretch->begin - ring_bytes(kPayload), stretch->begin);
    taken = RingWord::of(3, receiver.taken());
  }
  ASSERT_GT(sender.head(), RingWord::kPositions);
  ASSERT_TRUE(sender.allocate(kPayload, receiver.taken()));
  Granted granted;
  granted.add(nullptr, sender.bytes());
  granted.find(1)->released = receiver;
  granted.add(nullptr, 4096);
  granted.note_left(left_word(2, 1, sender));
  EXPECT_TRUE(granted.is_heard());
  EXPECT_FALSE(granted.take_over()) << "the last one was not taken out";
  granted.find(1)->released.release(receiver.taken(), sender.head());
  EXPECT_TRUE(granted.take_over());
}

TEST(Ring, WhatIsTooLongOrNonsenseIsRefused) {
  RingAllocator none;
  EXPECT_FALSE(none.allocate(1, 0));
  RingAllocator ring(1024);
  EXPECT_FALSE(ring.allocate(1024, 0)) << "no room for the signal";
  EXPECT_FALSE(ring.allocate(UINT64_MAX - 3, 0));
  EXPECT_FALSE(ring.allocate(8, 64)) << "more was taken out than there is";
  EXPECT_TRUE(ring.allocate(1016, 0));
  EXPECT_FALSE(ring.allocate(1, 0));
}

// What is wanted where there is no room: a ring that would have room for it beside what is under way.
TEST(Ring, MoreIsWantedThanThereIs) {
  RingAllocator ring(4096);
  EXPECT_EQ(RingAllocator().wanted(1000, 0), ring_bytes(1000));
  EXPECT_EQ(ring.wanted(100000, 0), ring_bytes(100000));
  const auto first = ring.allocate(1500, 0), second = ring.allocate(1500, 0);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(ring.allocate(1500, 0));
  EXPECT_EQ(ring.wanted(1500, 0), 4096 + ring_bytes(1500)) << "the ring's end is in the way";
  EXPECT_FALSE(ring.allocate(1500, 1000)) << "part of it";
  EXPECT_GT(ring.wanted(1500, 1000), 4096U);
  EXPECT_TRUE(ring.allocate(1500, first->end));
}

std::byte kMemory[2];

TEST(Granted, FewSendersHaveSomeFromTheBeginning) {
  constexpr uint64_t kAll = 64 << 20, kShortest = 512 << 10;
  EXPECT_EQ(Granted::early_bytes(kAll, 1, kShortest), 16u << 20);
  EXPECT_EQ(Granted::early_bytes(kAll, 2, kShortest), 16u << 20);
  EXPECT_EQ(Granted::early_bytes(kAll, 8, kShortest), 4u << 20);
  EXPECT_GE(Granted::early_bytes(kAll, 31, kShortest), 2 * ring_bytes(kShortest));
  EXPECT_EQ(Granted::early_bytes(kAll, 32, kShortest), 0u);
  EXPECT_EQ(Granted::early_bytes(0, 0, kShortest), 0u);
}

TEST(Granted, IsOverWhenItsSenderHasLeftItAndAllIsTakenOut) {
  Granted granted;
  EXPECT_EQ(granted.newest(), nullptr);
  EXPECT_TRUE(granted.is_heard());
  granted.add(kMemory, 4096);
  ASSERT_NE(granted.newest(), nullptr);
  EXPECT_TRUE(granted.is_heard()) << "whoever has none waits for the first";
  granted.find(1)->used = 128;
  granted.find(1)->released.release(0, 64);
  granted.add(kMemory + 1, 8192);
  EXPECT_FALSE(granted.is_heard());
  EXPECT_FALSE(granted.take_over()) << "it may still be used";
  granted.note_left(RingWord::of(1, 128));
  EXPECT_TRUE(granted.is_heard());
  EXPECT_FALSE(granted.take_over()) << "64 bytes were not taken out";
  EXPECT_FALSE(granted.is_over(1));
  granted.find(1)->released.release(64, 128);
  const auto over = granted.take_over();
  ASSERT_TRUE(over);
  EXPECT_EQ(over->memory, kMemory);
  EXPECT_EQ(over->used, 128u);
  EXPECT_EQ(granted.find(1), nullptr);
  EXPECT_TRUE(granted.is_over(1));
  EXPECT_FALSE(granted.is_over(2) || granted.is_over(3) || granted.is_over(0));
  EXPECT_FALSE(granted.take_over());
  EXPECT_EQ(granted.newest()->bytes, 8192u);
}

// What its sender has not heard of yet, it does not use.
TEST(Granted, ItsSenderIsToldOfTheOneThatItUses) {
  Granted granted;
  granted.add(kMemory, 4096);
  EXPECT_TRUE(granted.is_used(1));
  granted.add(kMemory, 4096);
  EXPECT_TRUE(granted.is_used(1) && granted.is_used(2));
  granted.find(2)->used = 64;
  EXPECT_FALSE(granted.is_used(1));
}

TEST(Granted, WhatItsSenderWasNotToldOfIsTakenBack) {
  Granted granted;
  granted.add(kMemory, 4096);
  granted.add(kMemory, 8192);
  granted.take_back();
  EXPECT_EQ(granted.newest()->bytes, 4096u);
  EXPECT_EQ(granted.next(), 2u);
  EXPECT_TRUE(granted.is_heard());
}

TEST(Granted, WordsOfWhatWasNotGrantedAreNothing) {
  Granted granted;
  granted.add(kMemory, 4096);
  for (const uint64_t number : {0, 1, 2, 65535}) granted.note_left(RingWord::of(number, 0));
  EXPECT_FALSE(granted.take_over()) << "the newest one is not left";
  granted.add(kMemory, 4096);
  granted.note_left(RingWord::of(1, 64));
  granted.note_left(RingWord::of(1, 0));
  EXPECT_FALSE(granted.take_over()) << "the first word counts";
}

// A program that sends once in a second has more of them in a day than a word has numbers.
TEST(Granted, NumbersNeedNotFitIntoAWord) {
  Granted granted;
  granted.add(kMemory, 4096);
  for (uint64_t number = 1; number < 200'000; ++number) {
    granted.add(kMemory, 4096);
    granted.note_left(RingWord::of(number - 1, 64));
    ASSERT_FALSE(granted.is_heard());
    granted.find(number)->released.release(0, 64);
    granted.note_left(RingWord::of(number, 64));
    ASSERT_TRUE(granted.is_heard()) << number;
    ASSERT_TRUE(granted.take_over()) << number;
    ASSERT_TRUE(RingWord::is_of(RingWord::of(number, 64), number));
    ASSERT_FALSE(RingWord::is_of(RingWord::of(number, 64), number + 1));
  }
}

// It uses the newest it has heard of, and may so leave one that it never had.
TEST(Granted, WhatItsSenderNeverHeardOfIsOver) {
  Granted granted;
  granted.add(kMemory, 4096);
  granted.add(kMemory, 4096);
  EXPECT_FALSE(granted.is_heard());
  granted.note_left(left_word(2, 0, RingAllocator()));
  EXPECT_TRUE(granted.is_heard());
  EXPECT_TRUE(granted.take_over());
}

TEST(Granted, NobodyElseGetsWhereSomethingMayStillBeWritten) {
  Granted granted;
  granted.add(kMemory, 4096);
  granted.find(1)->stays = true;
  granted.add(kMemory, 4096);
  granted.note_left(RingWord::of(1, 0));
  EXPECT_TRUE(granted.is_heard());
  EXPECT_FALSE(granted.take_over());
}

TEST(Granted, WhoWishesLeavesRoomForASmallOne) {
  EXPECT_EQ(Granted::free_bytes(1 << 20, 4096), (1u << 20) - 4096);
  EXPECT_EQ(Granted::free_bytes(1 << 20, 4097), (1u << 20) - 8192);
  EXPECT_EQ(Granted::free_bytes(4096, 4097), 0u);
}

// What lies in regions of a window before stays there.
TEST(Granted, AnotherWindowLeavesAllAsItIs) {
  Granted granted;
  granted.add(kMemory, 4096);
  granted.add(kMemory, 4096);
  granted.leave_window();
  EXPECT_EQ(granted.newest(), nullptr);
  EXPECT_TRUE(granted.is_heard());
  granted.note_left(RingWord::of(1, 0));
  EXPECT_FALSE(granted.take_over());
  EXPECT_FALSE(granted.is_used(1) || granted.is_used(2));
  granted.add(kMemory, 8192);
  EXPECT_EQ(granted.newest(), granted.find(3));
  EXPECT_NE(granted.find(2), nullptr);
}

}  // namespace
}  // namespace offpath::mpi
