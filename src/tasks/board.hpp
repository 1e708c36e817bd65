// SPDX-License-Identifier: BSD-3-Clause
// Board: the memory that a worker of the service and its executors share (docs/design/0024-tasks.md). The worker puts tasks
// on it, whichever executor has time takes one, and leaves the result there.
//
//   [BoardHeader][FunctionPlace x kMaxFunctions][room: arguments, ranges, copies of clients' memory, names of functions]
//
// Who may change an entry's word: the worker free -> ready, ready or running -> taken away, done or taken away -> free; an
// executor ready -> running, running -> done. The last four by compare-and-swap: one side wins. User code may write anything
// anywhere here, so each side checks what it reads.
#pragma once

#include "base/memfd.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace offpath::tasks {

using Atomic32 = std::atomic<uint32_t>;
using Atomic64 = std::atomic<uint64_t>;

inline constexpr uint64_t kBoardMagic = 0x31424f'5046'4f00ULL;
inline constexpr uint32_t kEntries = 64;  // as many as `finished` has bits
inline constexpr uint32_t kMaxExecutors = 64;
inline constexpr uint32_t kMaxFunctions = 4096;
inline constexpr uint32_t kNoEntry = UINT32_MAX;  // in the ring: nothing to take, but look at the socket

enum class State : uint32_t { free = 0, ready = 1, running = 2, done = 3, taken_away = 4 };

// State, and which executor runs it.
constexpr uint32_t word_of(State state, uint32_t executor = 0) { return static_cast<uint32_t>(state) | executor << 8; }
constexpr State state_of(uint32_t word) { return static_cast<State>(word & 0xff); }
constexpr uint32_t executor_of(uint32_t word) { return word >> 8; }

enum class EntryKind : uint32_t { run = 1, load = 2 };

// A range as an executor reaches it.
struct Reach {
  uint64_t client;  // whose shared memory it lies in, from `offset` on; 0: on the board
  uint64_t offset;
  uint64_t bytes;
  uint32_t access;
  uint32_t reserved;
};
static_assert(sizeof(Reach) == 32);

struct alignas(64) Entry {
  Atomic32 word;
  uint32_t kind;  // EntryKind
  uint32_t function;
  uint32_t ranges_count;
  uint64_t argument;  // offset on the board
  uint64_t argument_bytes;
  uint64_t ranges;  // offset of Reach[ranges_count]
  Atomic32 cancelled;
  // The answer.
  int32_t status;  // offpath_status_t
  int32_t code;
  uint32_t reserved;
  Atomic64 begun_ns;
  uint64_t run_ns;
  char text[256];
};

// What an executor says when it dies: 0, or a signal and where.
struct alignas(64) LastWords {
  Atomic32 said;
  int32_t signal;
  int32_t exit_status;
  uint32_t is_exit;
  uint64_t address;
  uint64_t offset;   // of the instruction in the object it belongs to
  char object[128];  // its path's end
};

// From the worker on an executor's socket, with the descriptor of a session's memory: from file offset session::kSegmentBytes on lie
// `bytes` of shared memory. No bytes, no descriptor: the client has gone.
struct ClientMemory {
  uint64_t client;
  uint64_t bytes;
};

struct FunctionPlace {
  uint64_t library, symbol, signature;  // offsets on the board; texts end with '\0'. signature 0: it is not checked
  uint64_t is_target;                   // OFFPATH_FUNCTION_TARGET
};

struct BoardHeader {
  uint64_t magic;
  uint64_t bytes;
  uint32_t executors;
  uint32_t reserved;
  alignas(64) Atomic32 posted;    // futex: what the worker has put into the ring so far
  Atomic32 worker_core;           // see device/segment.hpp
  alignas(64) Atomic32 taken;     // from the ring so far
  Atomic32 sleepers;              // executors
  alignas(64) Atomic64 finished;  // bits: entries that are done
  alignas(64) Atomic32 worker_sleeps;
  alignas(64) Atomic32 ring[kEntries];
  LastWords last_words[kMaxExecutors];
  Entry entries[kEntries];
};

inline constexpr uint64_t kFunctionsOffset = (sizeof(BoardHeader) + 4095) / 4096 * 4096;
inline constexpr uint64_t kRoomOffset = (kFunctionsOffset + kMaxFunctions * sizeof(FunctionPlace) + 4095) / 4096 * 4096;

class Board {
 public:
  // The worker's end makes it; executors get the descriptor.
  static base::Result<Board> create(uint64_t room_bytes, uint32_t executors);
  static base::Result<Board> adopt(base::Fd fd);

  BoardHeader& header() const { return *reinterpret_cast<BoardHeader*>(memory_.data()); }
  Entry& entry(uint32_t index) const { return header().entries[index % kEntries]; }
  FunctionPlace& function(uint32_t index) const {
    return reinterpret_cast<FunctionPlace*>(memory_.data() + kFunctionsOffset)[index % kMaxFunctions];
  }
  int fd() const { return memory_.fd(); }
  uint64_t bytes() const { return memory_.bytes(); }
  // Null unless all of it lies in the room.
  uint8_t* room(uint64_t offset, uint64_t bytes) const;
  // A text there that ends; null: there is none.
  const char* text(uint64_t offset) const;

  // Worker. Not while all executors are busy and much that was on the board was taken away.
  bool has_room() const {
    return header().posted.load(std::memory_order_relaxed) - header().taken.load(std::memory_order_acquire) < kEntries;
  }
  // Worker. False: the ring is full. An index of an entry that is ready, or kNoEntry.
  bool post(uint32_t index) const;
  void wake_executors(int count) const;
  // Entries that were done since the last call.
  uint64_t take_finished() const { return header().finished.exchange(0, std::memory_order_acquire); }
  // False: it is done, or nobody's. After that its executor, if it was running, will end itself; `executor`: which one.
  bool take_away(uint32_t index, std::optional<uint32_t>& executor) const;

  // Worker. False: an executor has begun it.
  bool take_back(uint32_t index) const {
    uint32_t ready = word_of(State::ready);
    return entry(index).word.compare_exchange_strong(ready, word_of(State::taken_away));
  }

  // Executor. The next entry that is ready, now this executor's.
  std::optional<uint32_t> take(uint32_t executor) const;
  bool has_news(uint32_t seen) const { return header().posted.load(std::memory_order_seq_cst) != seen; }
  // Sleeps until something is posted.
  void sleep(uint32_t seen) const;
  // False: it was taken away.
  bool finish(uint32_t index, uint32_t executor) const;

 private:
  explicit Board(base::Memfd memory) : memory_(std::move(memory)) {}
  base::Memfd memory_;
};

}  // namespace offpath::tasks
