// SPDX-License-Identifier: BSD-3-Clause
// Job: a task at its worker, from when it may begin until it has ended; or the registration of a function.
#pragma once

#include "service/tasks/room.hpp"
#include "tasks/record.hpp"

#include <tuple>

namespace offpath::service {

struct TaskEnd {
  base::Status status;
  int32_t code = 0;
  int32_t signal = 0;
  uint32_t executor = 0;
  uint32_t function = 0;
  uint64_t run_ns = 0;
};

struct Job {
  enum class Stage : uint8_t { queued, copied_in, copied, posted, copied_out, away };
  using Key = std::tuple<int64_t, uint64_t, uint64_t>;  // -priority, deadline, serial: the least begins first

  uint64_t client = 0;  // 0: it has gone, or is another worker's
  uint32_t slot = 0;
  tasks::EntryKind kind = tasks::EntryKind::run;
  tasks::Task task = {};
  uint64_t guest = 0;  // the number of one of another worker
  uint64_t serial = 0;
  Stage stage = Stage::queued;
  uint32_t entry = tasks::kNoEntry;
  uint64_t plate = 0;                    // room of its own for a long argument
  std::vector<Room::Piece> pieces = {};  // ranges that are copied
  uint64_t copy = 0;                     // under way, for two of the stages
  uint64_t kill_at_ns = 0;               // it was cancelled
  bool taken_away = false;               // from an executor that is being ended
  TaskEnd end = {};                      // while its results are copied, or why it was taken away
  uint64_t away = 0;                     // its number at another worker; 0: nothing of it is there
  bool on_copies = false;                // nothing of it is used in place, as its results may come from elsewhere
  bool begun_again = false;              // its first executor was given up

  Key key() const {
    const uint64_t deadline = task.deadline_ns == 0 ? UINT64_MAX : task.deadline_ns;
    return {-int64_t{task.priority}, deadline, serial};
  }
  bool is_own_task() const { return kind == tasks::EntryKind::run && client != 0; }
  bool is_timed() const { return task.limit_ns > 0 || kill_at_ns != 0; }
};

}  // namespace offpath::service
