// SPDX-License-Identifier: BSD-3-Clause
// Journal: what a service has done to a member's part of a window that must not be done twice, written down in memory of that
// member's process, which outlives the service (docs/design/0044-recovery.md, Windows).
//
// One operation at a time is open. Whatever it writes lies in the journal first: who reads it after the service's death
// writes that once more, and knows how many of its bytes are in place. Fetched values are there until there are too many.
//
//   [head][u64 x members: so many of each one's are done][what is being written][fetched values, in a ring]
//
// Threads: one. A reader needs a writer that is dead, or has ended.
#pragma once

#include "memory/port.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace offpath::remote {

// Of a journal for so many members.
uint64_t journal_bytes(uint32_t members);

// The service's end. The memory is the client's, who may change it: nothing that lies there is believed.
class Journal {
 public:
  // `keeper` keeps the memory. Preconditions: journal_bytes(members) of them, aligned to 8.
  Journal(uint8_t* memory, uint32_t members, std::shared_ptr<const void> keeper);

  // An operation begins, and has ended well. `from` < members; numbers of one origin ascend.
  void begin(uint32_t from, uint64_t number);
  void end();
  // A part of the open one is in place.
  bool is_begun() const { return done_bytes_ > 0; }
  // What lay there, which its origin is to get. Before anything is written.
  void note_fetched(std::span<const uint8_t> value);
  // Memory whose bytes write() need not copy; at most so long, until it returns.
  uint8_t* draft(size_t bytes);
  // Writes to `memory` for the open operation. Its calls go on in the order of the operation's data.
  base::Status write(const memory::Port& memory, uint64_t address, const uint8_t* from, size_t bytes);
  base::Status scatter(const memory::Port& memory, std::span<const memory::Range> ranges, const uint8_t* from);

 private:
  template <typename Write>
  base::Status write_intended(uint64_t bytes, Write write);

  uint8_t* const memory_;
  const uint32_t members_;
  const std::shared_ptr<const void> keeper_;
  uint32_t from_ = 0;
  uint64_t number_ = 0;
  uint64_t done_bytes_ = 0;
  uint64_t ring_end_ = 0;         // positions count on for ever
  std::deque<uint64_t> fetched_;  // where values begin that are still there
};

// `memory`, which is prompt, with all that is written going through the journal.
std::shared_ptr<memory::Port> make_journaled(std::shared_ptr<memory::Port> memory, std::shared_ptr<Journal> journal);

// What a dead service has left.
class History {
 public:
  // Nothing: it has kept no journal there. Completes what it was writing, in this process's own memory (`memory`).
  static std::optional<History> read(std::span<const uint8_t> journal, uint32_t members, const memory::Port& memory);

  // So many of that member's are done, and of its next one so many bytes.
  uint64_t done_count(uint32_t from) const { return done_[from]; }
  uint64_t done_bytes(uint32_t from, uint64_t number) const {
    return open_ && open_->from == from && open_->number == number ? open_->bytes : 0;
  }
  // What that one's operation fetched; nothing: that is not known any more.
  std::optional<std::vector<uint8_t>> fetched(uint32_t from, uint64_t number) const;

 private:
  struct Open {
    uint32_t from;
    uint64_t number;
    uint64_t bytes;
  };
  struct Value {
    uint32_t from;
    uint64_t number;
    std::vector<uint8_t> bytes;
  };
  std::vector<uint64_t> done_;
  std::optional<Open> open_;
  std::vector<Value> values_;
};

}  // namespace offpath::remote
