// SPDX-License-Identifier: BSD-3-Clause
// A function and a task in a session segment: what the client says, and what the service answers. Pure.
//
//   [ResultRecord][FunctionRecord][library][symbol][signature]
//   [ResultRecord][TaskRecord][RangeRecord x ranges_count][u32 x after_count][argument]
//
// The service writes the ResultRecord before it sets the slot to done.
#pragma once

#include "base/result.hpp"

#include <offpath/task.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::tasks {

inline constexpr uint32_t kMaxNameBytes = 4095;

struct ResultRecord {
  int32_t code;
  int32_t signal;
  uint32_t executor;
  uint32_t function;  // of a registration: what tasks name
  uint64_t run_ns;
  char text[256];
};
static_assert(sizeof(ResultRecord) == 280);

struct FunctionRecord {
  uint32_t library_bytes;
  uint32_t symbol_bytes;
  uint32_t signature_bytes;
  uint32_t flags;
};
static_assert(sizeof(FunctionRecord) == 16);
// Of a FunctionRecord: the signature is checked; OFFPATH_FUNCTION_TARGET.
inline constexpr uint32_t kSigned = 1;
inline constexpr uint32_t kTarget = 2;

struct TaskRecord {
  uint32_t function;
  uint32_t argument_bytes;
  uint32_t ranges_count;
  uint32_t after_count;
  int32_t priority;
  uint32_t flags;  // of offpath_task_params_t
  uint64_t limit_ns;
  uint64_t cost_ns;
  uint64_t deadline_ns;
};
static_assert(sizeof(TaskRecord) == 48);

struct RangeRecord {
  uint64_t address;  // of the client
  uint64_t bytes;
  uint32_t access;   // offpath_task_access_t
  uint32_t version;  // see offpath_task_range_t
};
static_assert(sizeof(RangeRecord) == 24);
// Of a number that somebody else has written.
constexpr bool is_access(uint32_t number) {
#define OFFPATH_TASK_ACCESS(NAME, number, about) case number:
  switch (number) {
#include <offpath/words/task_accesses.def>
    return true;
  }
  return false;
}
// Memory that can be, an access that there is, and a version of what is only read.
bool is_whole(const RangeRecord& range);

// A gate of a team: [u32 count][u32 x count], slots or how they have ended.
//
// In place of a slot that a task or a gate comes after: it has ended well, or not.
inline constexpr uint32_t kEndedWell = UINT32_MAX;
inline constexpr uint32_t kEndedBadly = UINT32_MAX - 1;

struct Function {
  std::string library, symbol, signature;
  bool is_signed = false;
  bool is_target = false;  // OFFPATH_FUNCTION_TARGET
  bool operator==(const Function&) const = default;
};

struct Task {
  uint32_t function = 0;
  int32_t priority = 0;
  uint32_t flags = 0;
  uint64_t limit_ns = 0, cost_ns = 0, deadline_ns = 0;
  std::vector<uint8_t> argument;
  std::vector<RangeRecord> ranges;
  std::vector<uint32_t> after;  // slots, or how they have ended
};

uint32_t flags_of(const Function& function);
// False: there are others.
bool take_flags(uint32_t flags, Function& function);

// With room for the result. after_offset: where the slots are that the task comes after.
std::vector<uint8_t> encode(const Function& function);
std::vector<uint8_t> encode(const Task& task, uint64_t* after_offset);
// The client may change the bytes meanwhile. Counts and lengths are within the limits of offpath.h, and each range has memory, an
// access, and an end in the address space. What function and slots mean is not looked at.
base::Result<Function> decode_function(std::span<const uint8_t> from);
base::Result<Task> decode_task(std::span<const uint8_t> from);
// Without what they are: the client fills that in, from after_offset on.
std::vector<uint8_t> encode_gate(uint32_t count, uint64_t* after_offset);
base::Result<std::vector<uint32_t>> decode_gate(std::span<const uint8_t> from);

}  // namespace offpath::tasks
