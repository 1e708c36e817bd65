// SPDX-License-Identifier: BSD-3-Clause
// Tasks: those of a worker's clients that may begin: copies what they need that is not shared, puts them on the board,
// takes the results off it, and looks after the executors (docs/design/0024-tasks.md). Used by the worker's thread alone.
#pragma once

#include "base/fd.hpp"
#include "device/arena.hpp"
#include "memory/port.hpp"
#include "service/tasks/executors.hpp"
#include "tasks/record.hpp"

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

namespace offpath::service {

inline constexpr uint64_t kPlateBytes = 4096;  // of each entry of a board, for what is short

// A client's memory: what its executors share with it, and how the worker reaches the rest.
struct Home {
  std::shared_ptr<memory::Port> memory;
  std::shared_ptr<base::Fd> file;
  uint64_t address = 0;  // of the shared memory, in the client
  uint64_t bytes = 0;
};

struct TaskEnd {
  base::Status status;
  int32_t code = 0;
  int32_t signal = 0;
  uint32_t executor = 0;
  uint32_t function = 0;
  uint64_t run_ns = 0;
};

struct TaskCounts {
  uint64_t done = 0, failed = 0, executors_lost = 0, run_ns = 0;
  uint32_t waiting = 0, running = 0;
};

class Tasks {
 public:
  struct Options {
    uint32_t executors = 1;
    bool spin = false;
    uint64_t room_bytes = uint64_t{1} << 30;  // for copies of memory that is not shared
    uint64_t memory_bytes = 0;                // see Executors
    uint64_t cancel_ns = 1000000000;          // how long one that was cancelled may go on
  };
  using OnEnd = std::function<void(uint64_t client, uint32_t slot, const TaskEnd&)>;
  using OnStart = std::function<void(uint64_t client, uint32_t slot)>;

  // bell: eventfd that wakes the worker. watch: is told a descriptor and the number of the executor that has ended when it is
  // readable.
  Tasks(const Options& options, int bell, std::function<void(int, uint32_t)> watch, OnEnd on_end);
  ~Tasks();

  bool knows(uint64_t client) const { return homes_.contains(client); }
  // Has an executor load it: ends with its number.
  base::Status register_function(uint64_t client, uint32_t slot, const Home& home, tasks::Function function);
  // It may begin now.
  base::Status submit(uint64_t client, uint32_t slot, tasks::Task task);
  // False: there is no such task here.
  bool cancel(uint64_t client, uint32_t slot);
  void remove_client(uint64_t client);

  // Whether anything was done.
  bool progress();
  // The worker is about to sleep. Whether there is something to do before.
  bool announce_sleep();
  void note_awake();
  // Until a look at the clock is due; -1: never.
  int timeout_ms() const;
  void on_executor_ended(uint32_t number);
  bool any_on_board() const { return outstanding_ > 0; }
  uint32_t executors() const { return executors_ == nullptr ? 0 : executors_->count(); }
  TaskCounts counts() const;

 private:
  enum class Stage : uint8_t { queued, copied_in, posted, copied_out };
  struct Piece {  // a range that is copied
    uint32_t range;
    uint64_t place;  // on the board
  };
  struct Job {
    uint64_t client;  // 0: it has gone
    uint32_t slot;
    uint64_t serial;
    tasks::EntryKind kind;
    tasks::Task task;
    std::shared_ptr<memory::Port> memory;
    Stage stage = Stage::queued;
    uint32_t entry = 0;
    uint64_t plate = 0;  // room of its own for a long argument
    std::vector<Piece> pieces;
    size_t piece = 0;  // that is being copied, from `copied` on
    uint64_t copied = 0;
    uint64_t kill_at_ns = 0;  // it was cancelled
    bool taken_away = false;  // from an executor that is being ended
    TaskEnd end;              // while its results are copied, or why it was taken away
  };
  using Key = std::tuple<int64_t, uint64_t, uint64_t>;  // -priority, deadline, serial
  static Key key_of(const Job& job);
  static uint64_t name_of(uint64_t client, uint32_t slot) { return client << 10 | slot; }

  base::Status open();
  Job& add(uint64_t client, uint32_t slot, tasks::EntryKind kind, tasks::Task task);
  bool feed();
  enum class Staged : uint8_t { yes, later, never };
  Staged stage(Job& job);
  bool copy();
  bool copy_some(Job& job, uint64_t& budget);
  void put_on_board(Job& job);
  bool collect();
  void take_result(Job& job);
  void look_at_clock();
  void take_away(Job& job, const base::Status& why);
  void end(Job& job, TaskEnd result);
  void release(Job& job);
  void release_room(Job& job);
  void fail_all(const base::Status& status);

  const Options options_;
  const int bell_;
  const std::function<void(int, uint32_t)> watch_;
  const OnEnd on_end_;
  std::unique_ptr<tasks::Board> board_;
  std::unique_ptr<Executors> executors_;
  std::unique_ptr<device::Arena> room_;
  std::vector<tasks::Function> functions_;
  std::unordered_map<uint64_t, Home> homes_;
  std::unordered_map<uint64_t, std::unique_ptr<Job>> jobs_;  // of clients that live, by name_of
  std::unordered_map<uint64_t, std::unique_ptr<Job>> left_;  // of those that do not, by serial
  std::set<std::pair<Key, Job*>> queued_;
  std::deque<Job*> copying_;
  std::array<Job*, tasks::kEntries> on_board_{};
  std::vector<uint32_t> free_entries_;
  std::array<uint64_t, tasks::kEntries> plates_{};
  uint32_t posted_ = 0;       // to wake executors for
  uint32_t outstanding_ = 0;  // entries in use
  uint32_t timed_ = 0;        // jobs with a limit, or cancelled
  uint64_t next_serial_ = 1;
  uint64_t next_look_ns_ = 0;
  TaskCounts counts_;
};

}  // namespace offpath::service
