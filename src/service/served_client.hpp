// SPDX-License-Identifier: BSD-3-Clause
// ServedClient: one attached client as its worker sees it: takes what it submits, gives it to the engine as graphs and
// requests, opens its windows to others, and writes results into its session segment.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "engine/engine.hpp"
#include "memory/aliases.hpp"
#include "ops/collectives/kept_graphs.hpp"
#include "ops/onesided/target.hpp"
#include "service/charges.hpp"
#include "service/completion_count.hpp"
#include "service/gates.hpp"
#include "service/in_flight.hpp"
#include "service/reflection.hpp"
#include "service/served_files.hpp"
#include "service/tasks/balancer.hpp"
#include "session/member_address.hpp"
#include "session/observation.hpp"
#include "session/segment_view.hpp"
#include "tasks/order.hpp"

#include <functional>
#include <optional>
#include <unordered_map>

namespace offpath::service {

// What a worker has for its clients.
struct Workplace {
  engine::Engine& engine;
  ops::onesided::Target& target;
  Tasks& tasks;
  Balancer& balancer;
  memory::FileThreads& file_threads;
  uint32_t worker;
};

class ServedClient {
 public:
  ServedClient(engine::ClientId id, pid_t process, base::Fd alive, base::Fd socket, session::SegmentView view,
               const session::ServiceId& service, std::shared_ptr<memory::Aliases> aliases,
               std::unique_ptr<Reflection> reflection = nullptr);
  // Before anything is taken from it; `here` stays.
  void use(const Workplace& here, std::shared_ptr<memory::Port> memory);

  engine::ClientId id() const { return id_; }
  int socket() const { return socket_.get(); }
  // Readable when its process has ended, which the socket does not say while a child of it has that, too. Or -1.
  int process() const { return alive_.get(); }
  session::SegmentHeader& header() { return view_.header(); }
  // Something submitted that was not taken yet, or a question that was not answered?
  bool has_submission() const;
  // It wrote nonsense where it may not: whoever serves it should let it go.
  bool broken() const { return view_.corrupt(); }
  // Takes what is submitted now, if anything, and carries it out; says after each that this worker lives. A client that goes on
  // submitting does not keep others from their turn.
  bool take_submissions();

  // A descriptor has come for one of its files; none: this process could not take it.
  void take_file(uint32_t number, base::Fd descriptor) { files_->take(number, std::move(descriptor)); }

  void charge(const Charges::Share& share);

  // Something has happened that it may wait for.
  void tell() { view_.tell(); }
  // The service has begun an operation for one of the job's processes: this one waits asleep from now on, too.
  bool is_shown_use() const { return view_.header().in_use.load(std::memory_order_relaxed) != 0; }
  void show_use() {
    header().in_use.store(1, std::memory_order_release);
    tell();
  }
  // Another service is in this one's place.
  void leave() {
    header().leaves.store(1, std::memory_order_release);
    tell();
  }
  // Wakes the client's sleeping threads if something happened for them, and says that this worker lives; after each
  // round of work.
  void wake() {
    show_memory_use();
    view_.wake();
    view_.answer();
    if (reflection_ != nullptr) reflection_->publish(base::clock_ns());
  }
  // wake() is to be called again within Reflection::kLaterNs.
  bool owes_words() const { return reflection_ != nullptr && reflection_->owes(); }
  // Its agent's number of it, at the door with that outbox only.
  std::optional<uint32_t> number_at(const Outbox& door) const {
    return reflection_ == nullptr ? std::nullopt : reflection_->number_at(door);
  }

  // What observers see of it. Looks at all that is under way: for a slow tick.
  void show(session::ClientRecord& record) const;

  // From the engine's observer; `slot` or `context` is what was given to post() or post_request().
  void on_first_byte(uint64_t context);
  void on_arrived(uint64_t context);
  void on_step(uint64_t slot, uint32_t peer, uint64_t bytes, bool local);
  void on_served(uint64_t slot, uint32_t peer, uint64_t bytes, bool local);
  void on_coded(const engine::Coded& coded);
  void on_sampled(const codecs::Chooser::Sampled& sampled);
  void on_finished(uint64_t context, const base::Status& status);
  void on_member_lost(uint64_t team_record, uint32_t rank, engine::Loss how);
  void on_task_ended(uint32_t index, const TaskEnd& end);

 private:
  struct ServedTeam {
    engine::TeamHandle handle = 0;
    ops::Topology topology;
    uint64_t next_sequence = 0;
    ops::KeptGraphs graphs;
  };

  // The one-sided operations that were posted on a window; they may outlive it.
  struct Operations {
    uint64_t record = 0;  // arena offset of the WindowRecord
    CompletionCount count;
  };
  struct ServedWindow {
    uint64_t id = 0;
    uint64_t team = 0;  // arena offset of the record
    engine::TeamHandle handle = 0;
    uint32_t team_size = 0;
    std::shared_ptr<Operations> operations;
  };
  // A one-sided operation under way.
  struct Remote {
    std::shared_ptr<Operations> operations;
    uint64_t number = 0;
  };
  // Of a context the rest is the slot's index.
  static constexpr uint64_t kRemoteContext = uint64_t{1} << 32;  // 33: Balancer::kContext; 34: ServedFiles::kContext

  void take_aliases();
  void show_memory_use();
  // And ends it, unless it goes on.
  void begin(session::OpKind kind, uint32_t index);
  base::Status carry_out(session::OpKind kind, uint32_t index, session::Slot& slot);
  base::Status create_team(const session::Slot& slot);
  void give_up_team(uint64_t record);
  void destroy_team(uint64_t record);
  // A collective or a program.
  base::Status begin_operation(session::OpKind kind, uint32_t index, session::Slot& slot);
  base::Result<graph::Graph> expand_collective(const session::Slot& slot, ServedTeam& team) const;
  base::Result<graph::Graph> expand_program(const session::Slot& slot, const ops::Topology& topology) const;
  // Tells the client how much is left to be done with whom.
  void show_work(session::Slot& slot, const graph::Graph& graph, const ops::Topology& topology);
  void count_down(session::Slot& slot, uint32_t peer);
  void finish(uint32_t index, offpath_status_t status, session::Counted counted = session::Counted::yes);

  // served_windows.cpp
  base::Status open_window(const session::Slot& slot);
  // Closes it or gives it up, or attaches or detaches memory.
  base::Status change_window(session::OpKind kind, uint32_t index, const session::Slot& slot);
  // Null: nothing is written down.
  std::shared_ptr<remote::Journal> journal_for(const session::WindowRecord& record, uint32_t members) const;
  void close_windows_of(uint64_t team);
  base::Status begin_remote(uint32_t index, session::Slot& slot);
  void finish_remote(uint32_t index, const base::Status& status);

  // served_tasks.cpp
  Home make_home(uint64_t descriptor) const;
  base::Status register_function(uint32_t index, const session::Slot& slot);
  base::Status begin_task(uint32_t index, const session::Slot& slot);
  base::Status start_task(uint32_t index, tasks::Task task);
  // What it comes after has ended.
  void decide_task(const tasks::Order::Decided& decided);
  void cancel_task(const session::Slot& slot);
  void show_task_end(uint32_t index, const TaskEnd& end);
  // Tasks that come after it go on, or fail.
  void note_end(uint32_t index, bool well);

  // served_gates.cpp
  // Whether it is a gate, or has to wait for one.
  bool hold(session::OpKind kind, uint32_t index);
  // The team in whose order it begins.
  uint64_t ordered_by(session::OpKind kind, const session::Slot& slot) const;
  // Whether there was something that may begin now.
  bool begin_released();
  bool take_submission();
  void begin_held(uint64_t team);
  base::Status take_spoilt(uint64_t team);

  // served_view.cpp
  void show_operation(uint32_t index, session::OldestRecord& record) const;

  const Workplace* here_ = nullptr;
  engine::ClientId id_;
  pid_t process_;
  uint32_t rank_ = session::kUnknownRank;  // in its largest team
  uint32_t team_size_ = 0;
  InFlight in_flight_;
  base::Fd alive_;
  base::Fd socket_;
  session::SegmentView view_;
  session::ServiceId service_;
  std::shared_ptr<memory::Aliases> aliases_;            // of the port to its memory
  std::unique_ptr<Reflection> reflection_;              // null: the segment is the client's own
  std::unordered_map<uint64_t, ServedTeam> teams_;      // by arena offset of the record
  std::unordered_map<uint64_t, ServedWindow> windows_;  // by arena offset of the record
  std::shared_ptr<memory::Port> memory_;
  std::shared_ptr<memory::Port> programs_memory_;  // of a client on another machine: what its vector programs work on
  tasks::Order order_{session::kSlotCount};
  std::unordered_map<uint32_t, tasks::Task> waiting_tasks_;  // by slot
  std::optional<ServedFiles> files_;                         // once it is used
  std::vector<uint64_t> task_numbers_;                       // by slot: of the task that was there last
  std::vector<tasks::Order::Decided> decided_;               // not acted upon yet
  bool settling_ = false;
  Gates gates_{order_};
  std::vector<Remote> remotes_;  // by slot; without operations: none is under way
};

}  // namespace offpath::service
