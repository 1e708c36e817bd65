// SPDX-License-Identifier: BSD-3-Clause
// Tasks: those of a worker's clients that may begin: copies what they need that is not shared, puts them on the board,
// takes the results off it, and looks after the executors (docs/design/0024-tasks.md). Used by the worker's thread alone.
#pragma once

#include "base/fd.hpp"
#include "device/arena.hpp"
#include "memory/port.hpp"
#include "service/tasks/copies.hpp"
#include "service/tasks/executors.hpp"
#include "service/tasks/kept.hpp"
#include "tasks/balance.hpp"
#include "tasks/record.hpp"

#include <array>
#include <deque>
#include <functional>
#include <map>
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

// Of this worker's clients: submitted to rerun. Of its executors, whosever the task: executed, run_ns.
struct TaskCounts {
  uint64_t submitted = 0, done = 0, failed = 0;
  uint64_t moved = 0;     // given to other workers
  uint64_t returned = 0;  // of these: the result came from there
  uint64_t rerun = 0;     // of these: begun at home, too
  uint64_t executed = 0, run_ns = 0;
  uint64_t executors_lost = 0;
  uint32_t waiting = 0, running = 0;
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
    uint32_t executors = 1;
    std::string executor;  // the command of one; empty: offpath-executor beside this program
    bool spin = false;
    uint64_t room_bytes = uint64_t{1} << 30;  // for copies of memory that is not shared
    uint64_t memory_bytes = 0;                // see Executors
    uint64_t cancel_ns = 1000000000;          // how long one that was cancelled may go on
  };
  using OnEnd = std::function<void(uint64_t client, uint32_t slot, const TaskEnd&)>;
  using OnStart = std::function<void(uint64_t client, uint32_t slot)>;

  // bell: eventfd that wakes the worker. wake: has progress() called soon; by any thread. watch: is told a descriptor and the
  // number of the executor that has ended when it is readable.
  Tasks(const Options& options, int bell, std::function<void()> wake, std::function<void(int, uint32_t)> watch,
        OnEnd on_end);
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
  bool any() const { return !jobs_.empty() || !left_.empty(); }
  uint32_t executors() const { return executors_ == nullptr ? 0 : executors_->count(); }
  uint64_t executors_cpu_ns() const { return executors_ == nullptr ? 0 : executors_->processor_ns(); }
  TaskCounts counts() const;
  void log_counts() const;

  // ---- moves.cpp: tasks that go to other workers and come from there --------------------------------------------
  struct Name {
    uint64_t client;
    uint32_t slot;
    uint64_t serial;
  };
  struct Range {
    uint32_t range;
    uint64_t place;                       // on the board
    std::optional<Kept::Name> kept = {};  // it stays there for others
    bool is_there = false;                // another task has copied it
  };
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
    Name name;
    const tasks::Task* task;
    uint64_t cost_ns;  // 0: not known
  };
  std::optional<Given> give(uint64_t number, const MayGo& may_go);
  // One that is away is begun here. Its result may still come; else nothing of it is elsewhere. False: it has been begun already, or has ended.
  bool take_back(const Name& name, bool may_still_come);
  // Its results have come, and lie there, which the task releases from then on. False: they are not wanted.
  bool deliver(const Name& name, uint64_t number, std::vector<Range> places, TaskEnd end);
  // Runs a task of another worker, whose ranges' addresses are places on the board. It is not copied, nor are they released.
  void host(uint64_t guest, tasks::Task task);
  // Nobody wants it any more; it ends all the same.
  void cancel_guest(uint64_t guest);
  void note_rerun() { ++counts_.rerun; }
  // How tasks name it.
  base::Result<uint32_t> number_of(tasks::Function function);
  bool any_waits() const { return !queued_.empty() || outstanding_ > options_.executors; }
  bool is_open() const { return executors_ != nullptr && executors_->living() > 0; }
  std::optional<uint64_t> reserve(uint64_t bytes) { return allocate(bytes); }
  void release(uint64_t place) { room_->release(place); }
  uint8_t* at(uint64_t place, uint64_t bytes) const { return board_->room(place, bytes); }
  // The board as memory, by place.
  std::shared_ptr<memory::Port> room() const;

 private:
  enum class Stage : uint8_t { queued, copied_in, copied, posted, copied_out, away };
  struct Job {
    uint64_t client;  // 0: it has gone, or is another worker's
    uint32_t slot;
    uint64_t serial;
    tasks::EntryKind kind;
    tasks::Task task;
    std::shared_ptr<memory::Port> memory;
    Stage stage = Stage::queued;
    uint32_t entry = tasks::kNoEntry;
    uint64_t plate = 0;         // room of its own for a long argument
    std::vector<Range> pieces;  // ranges that are copied
    uint64_t copy = 0;          // under way, for two of the stages
    uint64_t kill_at_ns = 0;    // it was cancelled
    bool taken_away = false;    // from an executor that is being ended
    TaskEnd end;                // while its results are copied, or why it was taken away
    uint64_t away = 0;          // its number at another worker; 0: nothing of it is there
    uint64_t guest = 0;         // the number of one of another worker
    bool on_copies = false;     // nothing of it is used in place, as its results may come from elsewhere
    bool begun_again = false;   // its first executor was given up
  };
  using Key = std::tuple<int64_t, uint64_t, uint64_t>;  // -priority, deadline, serial
  static Key key_of(const Job& job);
  static uint64_t name_of(uint64_t client, uint32_t slot) { return client << 10 | slot; }

  base::Status open();
  Job* find(const Name& name);
  bool may_go(const Job& job, const MayGo& may_go) const;
  // Ends it, or has that done; what was finished before stays as it is.
  void stop(Job& job, const base::Status& why);
  void disown(Job& job);
  void leave_board(Job& job);
  uint64_t cost_of(const tasks::Task& task) const;
  void each_ready(const std::function<void(const Job&)>& visit) const;
  tasks::State state_on_board(const Job& job) const;
  void note_cost(const tasks::Task& task, uint64_t run_ns);
  Job& add(uint64_t client, uint32_t slot, tasks::EntryKind kind, tasks::Task task);
  bool feed();
  enum class Staged : uint8_t { yes, later, never };
  Staged stage(Job& job);
  // False: there is no room for it now.
  bool find_place(Job& job, uint32_t range);
  std::optional<uint64_t> allocate(uint64_t bytes);
  // Ranges with one of these bits in their access.
  void copy(Job& job, Stage stage, uint32_t wanted);
  void on_copied(Job& job, const base::Status& status, uint32_t range);
  bool post_copied();
  void put_on_board(Job& job);
  bool collect();
  void take_result(Job& job);
  void look_at_clock();
  void look_at_executors();
  // False: what it had begun may have changed what it reads.
  bool begin_again(Job& job);
  void take_away(Job& job, const base::Status& why);
  void end(Job& job, TaskEnd result);
  // It ends when nothing of it is copied any more.
  void end_after_copy(Job& job, const base::Status& why);
  void release(Job& job);
  void release_room(Job& job);
  void fail_all(const base::Status& status);

  const Options options_;
  const int bell_;
  const std::function<void(int, uint32_t)> watch_;
  const OnEnd on_end_;
  std::shared_ptr<tasks::Board> board_;
  std::unique_ptr<Executors> executors_;
  std::unique_ptr<device::Arena> room_;
  std::vector<tasks::Function> functions_;
  std::vector<tasks::Mean> costs_;  // by function: what its tasks have taken here
  std::vector<double> hints_;       // by function: that by what their submitters said; 0: not known
  Mover* mover_ = nullptr;
  std::unordered_map<uint64_t, Home> homes_;
  std::unordered_map<uint64_t, std::unique_ptr<Job>> jobs_;  // of clients that live, by name_of
  std::unordered_map<uint64_t, std::unique_ptr<Job>> left_;  // of those that do not, and of other workers, by serial
  std::set<std::pair<Key, Job*>> queued_;
  Copies copies_;
  Kept kept_;
  std::deque<Job*> copied_;  // to be put on the board
  std::array<Job*, tasks::kEntries> on_board_{};
  std::vector<uint32_t> free_entries_;
  std::array<uint64_t, tasks::kEntries> plates_{};
  uint32_t posted_ = 0;       // to wake executors for
  uint32_t outstanding_ = 0;  // entries in use
  uint32_t timed_ = 0;        // jobs with a limit, or cancelled
  uint64_t next_serial_ = 1;
  uint64_t next_look_ns_ = 0;
  uint64_t executors_look_ns_ = 0;  // when they are looked at next
  TaskCounts counts_;
};

}  // namespace offpath::service
