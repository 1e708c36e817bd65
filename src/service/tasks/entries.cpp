// SPDX-License-Identifier: BSD-3-Clause
#include "service/tasks/entries.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace offpath::service {

using tasks::Entry;
using tasks::State;

namespace {
constexpr uint32_t kAhead = 8;  // for each executor
}  // namespace

Entries::Entries(Room& room, uint32_t executors)
    : room_(room),
      board_(room.board()),
      count_(std::min(tasks::kEntries, kAhead * executors)),
      plates_(room.reserve(count_ * kPlateBytes).value_or(0)) {
  for (uint32_t index = count_; index > 0; --index) free_.push_back(index - 1);
}

bool Entries::take(Job& job, std::span<const tasks::Reach> reaches) {
  const std::vector<uint8_t>& argument = job.task.argument;
  const uint64_t reaches_at = (argument.size() + 63) / 64 * 64, bytes = reaches_at + reaches.size_bytes();
  if (bytes > kPlateBytes) {
    const auto place = room_.reserve(bytes);
    if (!place) return false;
    job.plate = *place;
  }
  job.entry = free_.back();
  free_.pop_back();
  jobs_[job.entry] = &job;
  const uint64_t plate = job.plate != 0 ? job.plate : plates_ + job.entry * kPlateBytes;
  uint8_t* here = room_.at(plate, bytes);
  if (!argument.empty()) memcpy(here, argument.data(), argument.size());
  if (!reaches.empty()) memcpy(here + reaches_at, reaches.data(), reaches.size_bytes());
  Entry& entry = of(job);
  entry.kind = static_cast<uint32_t>(job.kind);
  entry.function = job.task.function;
  entry.ranges_count = static_cast<uint32_t>(reaches.size());
  entry.argument = plate;
  entry.argument_bytes = argument.size();
  entry.ranges = plate + reaches_at;
  return true;
}

bool Entries::post(Job& job) {
  job.stage = Job::Stage::posted;
  Entry& entry = of(job);
  entry.cancelled.store(0, std::memory_order_relaxed);
  entry.status = OFFPATH_ERR_INTERNAL;
  entry.begun_ns.store(0, std::memory_order_relaxed);
  entry.word.store(tasks::word_of(State::ready), std::memory_order_release);
  if (!board_.post(job.entry)) return false;
  ++to_wake_;
  return true;
}

void Entries::wake_executors() {
  if (to_wake_ == 0) return;
  tasks::BoardHeader& head = board_.header();
  const auto core = static_cast<uint32_t>(sched_getcpu() + 1);
  if (head.worker_core.load(std::memory_order_relaxed) != core) head.worker_core.store(core, std::memory_order_relaxed);
  board_.wake_executors(std::exchange(to_wake_, 0));
}

void Entries::release(Job& job) {
  if (job.entry == tasks::kNoEntry) return;
  of(job).word.store(tasks::word_of(State::free), std::memory_order_release);
  jobs_[job.entry] = nullptr;
  free_.push_back(std::exchange(job.entry, tasks::kNoEntry));
  if (job.plate != 0) room_.release(std::exchange(job.plate, 0));
}

std::vector<Job*> Entries::posted() const {
  std::vector<Job*> out;
  for (Job* job : jobs_) {
    if (job != nullptr && job->stage == Job::Stage::posted) out.push_back(job);
  }
  return out;
}

}  // namespace offpath::service
