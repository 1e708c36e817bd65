// SPDX-License-Identifier: BSD-3-Clause
// Tasks: those of a worker's clients that may begin: copies what they need that is not shared, puts them on the board,
// takes the results off it, and looks after the executors (docs/design/0024-tasks.md). Used by the worker's thread alone.
#pragma once

#include "base/fd.hpp"
#include "service/tasks/copies.hpp"
#include "service/tasks/entries.hpp"
#include "service/tasks/executors.hpp"
#include "service/tasks/functions.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

namespace offpath::service {

// A client's memory: what its executors share with it, and how the worker reaches the rest.
struct Home {
  std::shared_ptr<memory::Port> memory;
  std::shared_ptr<base::Fd> file;
  uint64_t address = 0;  // of the shared memory, in the client
  uint64_t bytes = 0;
};

// Of this worker's clients: submitted to rerun. Of its executors, whosever the task: executed, run_ns.
struct TaskCounts {
  uint64_t submitted = 0, done = 0, failed = 0;
  uint64_t moved = 0;     // given to other workers
  uint64_t returned = 0;  // of these: the result came from there
  uint64_t rerun = 0;     // of these: begun at home, too
  uint64_t executed = 0, run_ns = 0;
};

// Who takes tasks to other workers (service/tasks/balancer.hpp), as the tasks see it.
class Mover {
 public:
  virtual ~Mover() = default;
  // A task that is away, under that number, has ended here.
  virtual void on_over(uint64_t away) = 0;
  // One of another worker has; Tasks::host.
  virtual void on_guest_ended(uint64_t guest, const TaskEnd& end) = 0;
  // Whether room of the board will be free when something of that has ended.
  virtual bool holds_room() const = 0;
};

class Tasks {
 public:
  struct Options {
    Executors::Options executors;
    uint64_t room_bytes = uint64_t{1} << 30;  // for copies of memory that is not shared
    uint64_t cancel_ns = 1000000000;          // how long one that was cancelled may go on
  };
  using OnEnd = std::function<void(uint64_t client, uint32_t slot, const TaskEnd&)>;

  // bell: eventfd that wakes the worker. wake: has progress() called soon; by any thread. watch: is told a descriptor and the
  // number of the executor that has ended when it is readable.
  Tasks(const Options& options, int bell, std::function<void()> wake, std::function<void(int, uint32_t)> watch,
        OnEnd on_end);

  bool knows(uint64_t client) const { return homes_.contains(client); }
  // Has an executor load it: ends with its number.
  base::Status register_function(uint64_t client, uint32_t slot, const Home& home, tasks::Function function);
  // It may begin now.
  base::Status submit(uint64_t client, uint32_t slot, tasks::Task task);
  void cancel(uint64_t client, uint32_t slot);
  void remove_client(uint64_t client);

  // Whether anything was done.
  bool progress();
  // The worker is about to sleep. Whether there is something to do before.
  bool announce_sleep();
  void note_awake();
  // Until a look at the clock is due; -1: never.
  int timeout_ms() const;
  void on_executor_ended(uint32_t number);
  bool any_on_board() const { return shop_ != nullptr && shop_->entries.in_use() > 0; }
  bool any() const { return !jobs_.empty() || !left_.empty(); }
  uint32_t executors() const { return shop_ == nullptr ? 0 : shop_->executors.count(); }
  uint64_t executors_cpu_ns() const { return shop_ == nullptr ? 0 : shop_->executors.processor_ns(); }
  const TaskCounts& counts() const { return counts_; }
  void log_counts() const;

  // ---- moves.cpp: tasks that go to other workers and come from there --------------------------------------------
  using MayGo = std::function<bool(uint64_t client, const tasks::Task&, const tasks::Function&)>;
  void set_mover(Mover* mover) { mover_ = mover; }
  // Of its own clients' tasks.
  tasks::Load load() const;
  // What those that are ready run elsewhere, on average: by function, as measured there, else as long as here.
  uint64_t mean_elsewhere_ns(const std::map<uint32_t, tasks::Mean>& runs) const;
  struct Guests {
    uint32_t count = 0;
    uint64_t ns = 0;
  };
  Guests guests_waiting() const;
  // The one that would begin last, of those that may go; it is away then, under that number. Its task stays as it is until it ends.
  struct Given {
    uint64_t client;
    const tasks::Task* task;
    uint64_t cost_ns;  // 0: not known
  };
  std::optional<Given> give(uint64_t number, const MayGo& may_go);
  // One that is away is begun here. Its result may still come; else nothing of it is elsewhere. False: it has been begun already, or has ended.
  bool take_back(uint64_t number, bool may_still_come);
  // Its results have come, and lie there, which the task releases from then on. False: they are not wanted.
  bool deliver(uint64_t number, std::vector<Room::Piece> places, TaskEnd end);
  // Runs a task of another worker, whose ranges' addresses are places on the board. It is not copied, nor are they released.
  void host(uint64_t guest, tasks::Task task);
  // Nobody wants it any more; it ends all the same.
  void cancel_guest(uint64_t guest);
  bool any_waits() const {
    return !queued_.empty() || (shop_ != nullptr && shop_->entries.in_use() > options_.executors.count);
  }
  bool is_open() const { return shop_ != nullptr && shop_->executors.living() > 0; }
  // Precondition of both: a function is registered here.
  Room& room() { return shop_->room; }
  Functions& functions() { return shop_->functions; }

 private:
  using Stage = Job::Stage;
  // There from the first function on.
  struct Shop {
    Shop(tasks::Board board, const Executors::Options& wanted, int bell)
        : room(std::move(board)), functions(room), entries(room, wanted.count), executors(wanted, room.board(), bell) {}
    Room room;
    Functions functions;
    Entries entries;
    Executors executors;
  };
  static uint64_t name_of(uint64_t client, uint32_t slot) { return client << 10 | slot; }

  base::Status open();
  Job& add(uint64_t client, uint32_t slot, tasks::Task task, tasks::EntryKind kind = tasks::EntryKind::run,
           uint64_t guest = 0);
  void queue(Job& job);
  // Ends it, or has that done; what was finished before stays as it is.
  void stop(Job& job, const base::Status& why);
  // Nobody gets its result from now on.
  void disown(Job& job);
  void end(Job& job, TaskEnd result);
  void leave_board(Job& job);
  // Its result can come from here only.
  void give_up_away(Job& job);

  // moves.cpp
  void each_ready(const std::function<void(const Job&)>& visit) const;
  bool may_go(const Job& job, const MayGo& may_go) const;

  // way.cpp
  bool feed();
  enum class Staged : uint8_t { yes, later, never };
  Staged stage(Job& job);
  // None: there is no room for it now.
  std::optional<uint64_t> find_place(Job& job, uint32_t range);
  void put_on_board(Job& job);
  // Ranges with one of these bits in their access.
  void copy(Job& job, Stage stage, uint32_t wanted);
  void on_copied(Job& job, const base::Status& status, uint32_t range);
  bool post_copied();
  bool collect();
  void take_result(Job& job);

  // losses.cpp
  void take_away(Job& job, const base::Status& why);
  void look_at_clock();
  void look_at_executors();
  // False: what it had begun may have changed what it reads.
  bool begin_again(Job& job);
  void fail_all(const base::Status& status);

  const Options options_;
  const int bell_;
  const std::function<void(int, uint32_t)> watch_;
  const OnEnd on_end_;
  std::unique_ptr<Shop> shop_;
  Mover* mover_ = nullptr;
  std::unordered_map<uint64_t, Home> homes_;
  std::unordered_map<uint64_t, std::unique_ptr<Job>> jobs_;  // of clients that live, by name_of
  std::unordered_map<uint64_t, std::unique_ptr<Job>> left_;  // of those that do not, and of other workers, by serial
  std::unordered_map<uint64_t, Job*> away_;                  // by their numbers there
  std::set<std::pair<Job::Key, Job*>> queued_;
  Copies copies_;
  std::deque<Job*> copied_;  // to be put on the board
  uint32_t timed_ = 0;       // jobs with a limit, or cancelled
  uint64_t next_serial_ = 1;
  uint64_t next_look_ns_ = 0;
  uint64_t executors_look_ns_ = 0;  // when they are looked at next
  TaskCounts counts_;
};

}  // namespace offpath::service
