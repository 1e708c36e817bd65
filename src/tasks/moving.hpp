// SPDX-License-Identifier: BSD-3-Clause
// What services say to each other about tasks that move: bodies of requests (graph/request.hpp), little endian. Pure
// (docs/design/0029-balancing.md).
//
//   ask      "I have more than I can run; how much do you take?" Answered by a Grant, perhaps later
//   task     one task. The graphs beside it bring what it reads: block i is range i, kArgumentTag a long argument
//   collect  "give me what became of it." Answered when it has ended well: block i is range i, kOutcomeTag an Outcome.
//            Ended otherwise: refused
//   drop     "nobody wants it any more."
//
// A task has one number for all of these. Everything is checked when it is read.
#pragma once

#include "tasks/record.hpp"

namespace offpath::tasks {

inline constexpr uint64_t kMovingMark = UINT64_MAX;  // of all of them, where a one-sided operation names its window
inline constexpr uint32_t kMovedRanges = 200;        // a task with more of them stays home
inline constexpr uint32_t kInlineArgument = 1024;    // what is longer is a block
inline constexpr uint32_t kArgumentTag = 1 << 16;
inline constexpr uint32_t kOutcomeTag = kArgumentTag + 1;
inline constexpr size_t kGrantBytes = 16;
inline constexpr size_t kOutcomeBytes = 16;

enum class Saying : uint8_t { ask = 1, task = 2, collect = 3, drop = 4 };

// What there is to do at a worker.
struct Load {
  uint32_t executors = 0;
  uint32_t running = 0;
  uint32_t ready = 0;       // that could begin
  uint64_t ready_ns = 0;    // what these will take one executor
  uint64_t running_ns = 0;  // what is left of those that run
  uint64_t trip_ns = 0;     // ask: what a task that goes there takes beside running and waiting, both ways
  uint64_t there_ns = 0;    // ask: what one of the ready tasks runs there, on average; 0: as long as here
  bool operator==(const Load&) const = default;
};

struct Grant {
  uint32_t count = 0;  // tasks
  uint32_t executors = 0;
  uint64_t wait_ns = 0;  // until the first of them is begun
};

struct Outcome {
  uint64_t run_ns = 0;
  uint64_t wait_ns = 0;  // from when all of it was there until it had ended, less that
};

// A task as another worker gets it: ranges have no addresses.
struct Moved {
  Function function;
  Task task;
  uint32_t argument_bytes = 0;  // of a long one, which comes as a block
};

struct Said {
  Saying saying = Saying::ask;
  uint64_t number = 0;  // all but ask
  Load load;            // ask
  Moved moved;          // task
};

// Whether somebody says something about tasks in it.
bool is_about_tasks(std::span<const uint8_t> body);

std::vector<uint8_t> encode_ask(const Load& load);
// Empty: it has too much to go with a request of so many bytes.
std::vector<uint8_t> encode_moved(uint64_t number, const Function& function, const Task& task, size_t most_bytes);
std::vector<uint8_t> encode_about(Saying saying, uint64_t number);
// OFFPATH_ERR_ARGUMENT: nothing of the above. A task's ranges have lengths and accesses that can be.
base::Result<Said> decode_said(std::span<const uint8_t> body);

std::vector<uint8_t> encode(const Grant& grant);
Grant decode_grant(std::span<const uint8_t, kGrantBytes> from);
void encode(const Outcome& outcome, std::span<uint8_t, kOutcomeBytes> to);
Outcome decode_outcome(std::span<const uint8_t, kOutcomeBytes> from);

}  // namespace offpath::tasks
