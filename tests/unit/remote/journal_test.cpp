// SPDX-License-Identifier: BSD-3-Clause
// A service that dies between any two instructions while it writes through its journal: what it has left says what is in place.
#include "remote/journal.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace offpath::remote {
namespace {

constexpr uint32_t kMembers = 2, kFrom = 1;
constexpr uint64_t kNumber = 5, kWords = 3;

// The journal, then the window and a word that says that all is done.
struct Place {
  uint64_t* window() const { return reinterpret_cast<uint64_t*>(memory + journal_bytes(kMembers)); }
  uint64_t& over() const { return window()[kWords]; }
  uint8_t* memory;
  size_t bytes = journal_bytes(kMembers) + 8 * (kWords + 1);
};

// Adds to counters, as an accumulate does that has read zeros.
[[noreturn]] void write_all(const Place& place) {
  Journal journal(place.memory, kMembers, nullptr);
  journal.begin(kFrom, kNumber);
  const auto port = memory::make_direct();
  const uint64_t ones[kWords] = {1, 1, 1};
  const auto* from = reinterpret_cast<const uint8_t*>(ones);
  const auto address = reinterpret_cast<uint64_t>(place.window());
  const memory::Range ranges[] = {{static_cast<int64_t>(address) + 8, 8}, {static_cast<int64_t>(address) + 16, 8}};
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);  // or nobody would be told of the stop
  raise(SIGSTOP);
  const bool written = journal.write(*port, address, from, 8).ok() && journal.scatter(*port, ranges, from + 8).ok();
  journal.end();
  place.over() = 1;
  _exit(written ? 0 : 1);
}

// What a dead process has left, as a copy: its addresses mean that.
class Left : public memory::Port {
 public:
  explicit Left(const Place& place) : begin_(place.memory), copy(place.memory, place.memory + place.bytes) {}
  memory::Outcome read(void*, uint64_t, size_t, memory::Ticket) const override { return {}; }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket) const override {
    memcpy(&copy[address - reinterpret_cast<uint64_t>(begin_)], from, bytes);
    return {};
  }
  uint64_t word(uint64_t index) const {
    uint64_t value = 0;
    memcpy(&value, &copy[journal_bytes(kMembers) + 8 * index], sizeof(value));
    return value;
  }

 private:
  const uint8_t* const begin_;

 public:
  mutable std::vector<uint8_t> copy;
};

void check(const Place& place) {
  const Left left(place);
  const auto history = History::read({left.copy.data(), journal_bytes(kMembers)}, kMembers, left);
  ASSERT_TRUE(history);
  const bool is_done = history->done_count(kFrom) == kNumber + 1;
  const uint64_t bytes = is_done ? 8 * kWords : history->done_bytes(kFrom, kNumber);
  for (uint64_t i = 0; i < kWords; ++i) ASSERT_EQ(left.word(i), bytes > 8 * i ? 1U : 0U) << bytes << " bytes";
}

TEST(Journal, SaysWhatIsInPlaceAfterEachInstruction) {
  Place place{};
  void* const memory = mmap(nullptr, place.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  place.memory = static_cast<uint8_t*>(memory);
  const pid_t writer = fork();
  if (writer == 0) write_all(place);
  int status = 0, instructions = 0;
  waitpid(writer, &status, 0);
  const bool is_traced = WIFSTOPPED(status);
  while (WIFSTOPPED(status) && place.over() == 0) {
    check(place);
    if (HasFatalFailure() || ptrace(PTRACE_SINGLESTEP, writer, nullptr, nullptr) != 0) break;
    waitpid(writer, &status, 0);
    ++instructions;
  }
  if (!WIFEXITED(status)) {
    kill(writer, SIGKILL);
    waitpid(writer, &status, 0);
  }
  if (!is_traced || instructions == 0) {
    munmap(memory, place.bytes);
    GTEST_SKIP() << "processes may not be traced here";
  }
  EXPECT_EQ(place.over(), 1U);
  EXPECT_GT(instructions, 100);
  check(place);
  munmap(memory, place.bytes);
}

}  // namespace
}  // namespace offpath::remote
