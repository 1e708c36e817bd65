// SPDX-License-Identifier: BSD-3-Clause
// The session segment: the memory that one client owns and its service maps. It says of each operation what was asked
// and whether it has begun and ended, so the client of a service that dies knows which ones it may issue again. How far
// an operation is, only the service knows. Fixed offsets, checked by golden tests.
//
//   [SegmentHeader][submission ring: u32 x slot_count][Slot x slot_count][AliasRecord x kMaxAliases][arena: teams, arrays]
//   [shared memory]
//
// Up to kSegmentBytes lies what client and service say to each other; behind it the memory that the client hands out to
// its program (offpath_memory_allocate), sparse: data only, which the service works on in place.
//
// Who writes what: the client writes a slot, sets its state to posted, puts its index into the ring and then advances
// `submitted`. The service advances `consumed`, sets the slot to active when it begins the operation, to arrived when
// its result is complete, if others are awaited then, and to done, after status, when it ends. Only the client frees a
// slot. Slots are begun in ring order.
// The service trusts nothing here: it copies arguments out once and checks every offset (SegmentView).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace offpath::session {

inline constexpr uint64_t kMagic = 0x314750'4646'4f'00ULL;  // "\0OFFPG1"
inline constexpr uint32_t kVersion = 20;
inline constexpr uint32_t kSlotCount = 1024;
inline constexpr size_t kSegmentBytes = size_t{64} << 20;  // without the shared memory

using Atomic32 = std::atomic<uint32_t>;
using Atomic64 = std::atomic<uint64_t>;
static_assert(Atomic32::is_always_lock_free && Atomic64::is_always_lock_free);

enum class OpKind : uint32_t {
#define OFFPATH_OP_KIND(name, number, does, forms, about) name = number,
#include <offpath/words/op_kinds.def>
};
// What is so of kinds of operations.
inline constexpr uint8_t kAside = 1;        // no operation to whoever reads the counters: teams, windows, functions
inline constexpr uint8_t kGoesOn = 2;       // once begun well, it ends later
inline constexpr uint8_t kInSequence = 4;   // it has a number of its team
inline constexpr uint8_t kHasResult = 8;    // its record begins with a ResultRecord (tasks/record.hpp)
inline constexpr uint8_t kNamesAfter = 16;  // its record says what it comes after
// Of a kind that somebody else has written, too.
constexpr bool does(OpKind kind, uint8_t what) {
  switch (kind) {
#define OFFPATH_OP_KIND(name, number, flags, forms, about) \
  case OpKind::name:                                       \
    return (what & (flags)) != 0;
#include <offpath/words/op_kinds.def>
  }
  return false;
}

// arrived: the result is complete, but other members may not have theirs.
enum class SlotState : uint32_t { free = 0, posted = 1, active = 2, done = 3, arrived = 4 };

// A sequence is less; the services have other uses for the numbers from there on.
inline constexpr uint64_t kMaxSequence = uint64_t{1} << 62;

// Flags of a slot.
inline constexpr uint32_t kOwnBlockByClient = 1;  // the service leaves the own blocks alone
inline constexpr uint32_t kTimed = 2;             // the service notes when things happened
inline constexpr uint32_t kTogether = 4;          // graph::Ends: together
inline constexpr uint32_t kByPairs = 8;           // by_pairs

struct alignas(64) Slot {
  Atomic32 state;  // SlotState
  uint32_t kind;   // OpKind
  int32_t status;  // offpath_status_t, valid when done
  uint32_t flags;
  uint64_t team;      // arena offset of the TeamRecord
  uint64_t sequence;  // of the operation in its team: ascending, with gaps where the client has no part; remote: in its
                      // window, from 0; task: in its session
  uint64_t record;  // arena offset of the CollectiveRecord (collective/record.hpp), RemoteRecord (remote/record.hpp) or
                    // ProgramRecord and what follows it
  uint64_t open;    // collective, program: arena offset of u32[team size]: pulls and exports of that member still open
  Atomic32 steps_left;  // for a person (offpath_op_describe)
  Atomic32 exports_left;
  uint64_t window;  // windows, remote: arena offset of the WindowRecord
  uint64_t address;
  uint64_t bytes;
  // With kTimed, collectives, programs and one-sided operations, by the service, CLOCK_MONOTONIC in ns: it began; the
  // first byte was moved; it ended (before `state`). 0: has not happened.
  Atomic64 started_ns;
  Atomic64 first_byte_ns;
  Atomic64 done_ns;
  Atomic32 last_peer;  // with kTimed: the member that the last finished block came from or went to; remote: the target
  uint32_t record_bytes;  // of `record`, with the counters that `open` names
  uint32_t reserved[2];
};
static_assert(sizeof(Slot) == 128);

inline constexpr size_t kCompressBytes = 64;

struct TeamRecord {
  uint8_t id[16];
  uint32_t rank;
  uint32_t size;
  uint32_t address_stride;
  Atomic32 broken;
  Atomic64 started;     // one more than the last sequence begun by the service
  uint64_t addresses;   // arena offset, addresses_count x address_stride bytes; teams may share them
  uint64_t address_of;  // arena offset of u32[size]: which of them is that member's
  uint64_t lost;        // arena offset of u8[size], set by the service: offpath_loss_t
  uint32_t addresses_count;
  uint32_t reserved;
  char compress[kCompressBytes];  // as OFFPATH_COMPRESS, ends with 0; empty: as that says
};
static_assert(sizeof(TeamRecord) == 136);

inline constexpr uint32_t kDynamicWindow = 1;
inline constexpr uint32_t kKeptWindow = 2;  // its client can do without the service (client/kept.hpp)

// One member's part of a window. Service: `completed`, the first so many of the operations posted on it are done;
// `failure`, the first one's status, set before it counts as completed; the client takes it and sets it to 0, unless
// it looks at all of them (kKeptWindow).
struct alignas(64) WindowRecord {
  uint64_t id;
  uint64_t base;
  uint64_t bytes;
  uint32_t flags;  // kDynamicWindow, kKeptWindow
  uint32_t reserved;
  uint64_t journal;  // arena offset of what the service writes down of it (remote/journal.hpp); 0: nothing
  uint64_t journal_bytes;
  Atomic64 issued;  // client: operations posted, those that wait for room included
  alignas(64) Atomic64 completed;
  Atomic32 failure;  // int32_t: offpath_status_t
};
static_assert(sizeof(WindowRecord) == 128);

inline constexpr uint32_t kNamesCrossing = 1;  // CrossingRecord behind all; else all crosses that is read or written
inline constexpr uint32_t kMatricesCross = 2;

// A vector program's arguments: this, then the arrays in the order of their counts. Values are those of offpath.h.
struct ProgramRecord {
  uint64_t rows;
  uint64_t scalars;  // address of the client, in the shared memory, as are those of the vectors
  uint32_t scalars_count;
  uint32_t reduce_first;
  uint32_t reduce_count;
  uint32_t vectors_count;     // uint64_t: addresses
  uint32_t matrices_count;    // MatrixRecord
  uint32_t before_count;      // ScalarStepRecord
  uint32_t after_count;       // ScalarStepRecord
  uint32_t statements_count;  // StatementRecord
  uint32_t terms_count;       // TermRecord, of all statements one after the other
  uint32_t crossing;          // kNamesCrossing, kMatricesCross
};
static_assert(sizeof(ProgramRecord) == 56);

// What crosses the link to a service on another machine.
struct CrossingRecord {
  uint32_t in_count;   // uint32_t: vectors
  uint32_t out_count;  // uint32_t: vectors
};
static_assert(sizeof(CrossingRecord) == 8);

struct MatrixRecord {
  uint64_t first_row;
  uint64_t rows;
  uint64_t offsets;  // addresses of the client, in the shared memory
  uint64_t columns;
  uint64_t values;
  uint64_t entries;
  uint64_t columns_count;  // length of the source vector
  uint32_t source;
  uint32_t target;
};
static_assert(sizeof(MatrixRecord) == 64);

struct ScalarStepRecord {
  uint32_t op;
  uint32_t result;
  uint32_t left;
  uint32_t right;
};
static_assert(sizeof(ScalarStepRecord) == 16);

struct StatementRecord {
  uint32_t kind;
  uint32_t target;
  uint32_t terms_count;
  uint32_t reserved;
};
static_assert(sizeof(StatementRecord) == 16);

struct TermRecord {
  uint32_t scalar;
  uint32_t vector;
};
static_assert(sizeof(TermRecord) == 8);

// Pages of the program that lie in the shared memory, too: the client has mapped them there (docs/design/0017-mapped-memory.md).
// The service may use either. The table is a hint: without it everything is reached at the program's own addresses.
struct AliasRecord {
  uint64_t address;  // of the client; whole pages
  uint64_t bytes;
  uint64_t offset;  // in the shared memory
};
static_assert(sizeof(AliasRecord) == 24);
inline constexpr uint32_t kMaxAliases = 512;

struct Counters {
  Atomic64 completed;
  Atomic64 failed;
  Atomic64 pulled_bytes;
  Atomic64 served_bytes;
  Atomic64 local_bytes;
};

struct SegmentHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t slot_count;
  uint64_t segment_bytes;
  uint64_t ring_offset;
  uint64_t slots_offset;
  uint64_t arena_offset;
  uint64_t probe_address;  // in the client's private memory, holds probe_value: can the service read it?
  uint64_t probe_value;
  alignas(64) Atomic32 submitted;      // client
  Atomic32 asked;                      // client: +1 when it wants a sign of life; rings the doorbell likewise
  alignas(64) Atomic32 consumed;       // service
  alignas(64) Atomic32 worker_sleeps;  // service: ring the doorbell after advancing `submitted`
  alignas(64) Atomic32 events;         // service: +1 per finished operation; futex word
  Atomic32 waiters;                    // client threads asleep on `events`
  Atomic32 answered;                   // service: what it has last seen in `asked`
  alignas(64) Counters counters;       // service
  uint64_t shared_address;             // of the shared memory, in the client
  uint64_t shared_bytes;               // multiple of 4096; 0: none
  // Client, for those who watch: the program's time in calls that waited, and since when it is in one (0: it is not),
  // CLOCK_MONOTONIC in ns. It polls: asks again and again whether something has happened, and does little else, until about then.
  alignas(64) Atomic64 waited_ns;
  Atomic64 waiting_since_ns;
  Atomic64 polls_until_ns;
  // Client: odd while it writes the table, else a new number for each new table. Set before what is submitted next.
  alignas(64) Atomic32 aliases_version;
  uint32_t aliases_count;
  // Service: 1 once another one is in its place (replacement.hpp). What was begun here ends here; what begins from now on is for
  // a session of that one.
  Atomic32 leaves;
  Atomic32 in_use;  // service: 1 once it has begun an operation for any process of the job on this node
  uint64_t reserved[6];
  // Service: what it counts of this client (words/counters.def). Of a double: its bits.
#define OFFPATH_SERVICE_COUNTER(type, name, line, metric, about) Atomic64 name;
#include <offpath/words/counters.def>
  Atomic64 saved_ns;  // on links, by what left compressed: an estimate. Of two's complement: it may have cost time
};
inline constexpr size_t kCodedOffset = offsetof(SegmentHeader, coded_bytes);  // from there on a DPU says them, too
inline constexpr size_t kCodedEnd = offsetof(SegmentHeader, saved_ns) + sizeof(Atomic64);
static_assert(offsetof(SegmentHeader, submitted) == 64);
static_assert(offsetof(SegmentHeader, counters) == 320);
static_assert(offsetof(SegmentHeader, waited_ns) == 384);

// Doubles as alignment of the parts.
inline constexpr size_t kHeaderBytes = 4096;
static_assert(sizeof(SegmentHeader) <= kHeaderBytes);

inline constexpr size_t kRingOffset = kHeaderBytes;
inline constexpr size_t kSlotsOffset = kRingOffset + size_t{kSlotCount} * sizeof(uint32_t);
inline constexpr size_t kAliasesOffset = kSlotsOffset + size_t{kSlotCount} * sizeof(Slot);
inline constexpr size_t kArenaOffset = kAliasesOffset + size_t{kMaxAliases} * sizeof(AliasRecord);

// Fills what a header says of the layout.
inline void describe_layout(SegmentHeader& head) {
  head.magic = kMagic;
  head.version = kVersion;
  head.slot_count = kSlotCount;
  head.segment_bytes = kSegmentBytes;
  head.ring_offset = kRingOffset;
  head.slots_offset = kSlotsOffset;
  head.arena_offset = kArenaOffset;
}

}  // namespace offpath::session
