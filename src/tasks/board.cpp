// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/board.hpp"

#include "session/futex.hpp"

#include <sys/stat.h>

#include <cstring>

namespace offpath::tasks {

using base::Memfd;
using base::Result;
using base::Status;

namespace {
constexpr uint64_t kSleepNs = 1000000000;  // then look again: nothing is lost by it
}

Result<Board> Board::create(uint64_t room_bytes, uint32_t executors) {
  auto memory = Memfd::create("offpath-tasks", kRoomOffset + room_bytes);
  if (!memory.ok()) return memory.status();
  Board board(std::move(memory.value()));
  board.header().bytes = board.bytes();
  board.header().executors = executors;
  board.header().magic = kBoardMagic;
  return board;
}

Result<Board> Board::adopt(base::Fd fd) {
  struct stat about {};
  if (fstat(fd.get(), &about) != 0 || about.st_size < static_cast<off_t>(kRoomOffset))
    return Status::error(OFFPATH_ERR_ARGUMENT, "what was given is no board of tasks");
  auto memory = Memfd::adopt(std::move(fd), static_cast<size_t>(about.st_size));
  if (!memory.ok()) return memory.status();
  Board board(std::move(memory.value()));
  if (board.header().magic != kBoardMagic || board.header().bytes != board.bytes())
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "the board of tasks is of another release. Install service and executor together");
  return board;
}

uint8_t* Board::room(uint64_t offset, uint64_t bytes) const {
  if (offset < kRoomOffset || offset > memory_.bytes() || bytes > memory_.bytes() - offset) return nullptr;
  return memory_.data() + offset;
}

const char* Board::text(uint64_t offset) const {
  const uint8_t* begin = room(offset, 1);
  if (begin == nullptr || memchr(begin, 0, memory_.bytes() - offset) == nullptr) return nullptr;
  return reinterpret_cast<const char*>(begin);
}

bool Board::post(uint32_t index) const {
  BoardHeader& head = header();
  const uint32_t posted = head.posted.load(std::memory_order_relaxed);
  if (posted - head.taken.load(std::memory_order_acquire) >= kEntries) return false;
  head.ring[posted % kEntries].store(index, std::memory_order_relaxed);
  head.posted.store(posted + 1, std::memory_order_seq_cst);
  return true;
}

void Board::wake_executors(int count) const {
  if (header().sleepers.load(std::memory_order_seq_cst) > 0) session::futex_wake(header().posted, count);
}

bool Board::take_away(uint32_t index, std::optional<uint32_t>& executor) const {
  Atomic32& word = entry(index).word;
  for (uint32_t seen = word.load(std::memory_order_acquire);;) {
    const State state = state_of(seen);
    if (state != State::ready && state != State::running) return false;
    if (!word.compare_exchange_weak(seen, word_of(State::taken_away, executor_of(seen)))) continue;
    executor.reset();
    if (state == State::running) executor = executor_of(seen);
    return true;
  }
}

// Several may look at the same place of the ring: one takes its entry, any of them moves on.
std::optional<uint32_t> Board::take(uint32_t executor) const {
  BoardHeader& head = header();
  while (true) {
    uint32_t taken = head.taken.load(std::memory_order_acquire);
    if (taken == head.posted.load(std::memory_order_acquire)) return std::nullopt;
    const uint32_t index = head.ring[taken % kEntries].load(std::memory_order_relaxed);
    uint32_t ready = word_of(State::ready);
    const bool mine = index < kEntries && entry(index).word.compare_exchange_strong(
                                              ready, word_of(State::running, executor), std::memory_order_acq_rel);
    head.taken.compare_exchange_strong(taken, taken + 1, std::memory_order_acq_rel);
    if (mine) return index;
  }
}

void Board::sleep(uint32_t seen) const {
  header().sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (!has_news(seen)) session::futex_wait(header().posted, seen, kSleepNs);
  header().sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

bool Board::finish(uint32_t index, uint32_t executor) const {
  uint32_t mine = word_of(State::running, executor);
  if (!entry(index).word.compare_exchange_strong(mine, word_of(State::done, executor), std::memory_order_acq_rel))
    return false;
  header().finished.fetch_or(uint64_t{1} << index, std::memory_order_seq_cst);
  return true;
}

}  // namespace offpath::tasks
