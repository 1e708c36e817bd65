// SPDX-License-Identifier: BSD-3-Clause
// Worker: a thread with its own event loop, fabric endpoint and engine; owns some clients. It sleeps in epoll when
// there is nothing to do, and spins briefly before that only when it has cores of its own. Where it shares them with a
// program that computes, a Nudge keeps it from standing still. Links to the agents of other hosts live in the same loop.
#pragma once

#include "engine/engine.hpp"
#include "fabric/named.hpp"
#include "base/nudge.hpp"
#include "service/agent_door.hpp"
#include "service/charges.hpp"
#include "service/served_client.hpp"
#include "service/tasks/balancer.hpp"
#include "service/tasks/tasks.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace offpath::service {

class Worker : public engine::Observer {
 public:
  struct Options {
    std::string cores;
    std::chrono::nanoseconds spin{0};
    // While much is under way the fabric is looked at when some 256 KiB have come, at least this often; 0: at
    // every event.
    std::chrono::nanoseconds coalesce{0};
    engine::Config engine;
    Tasks::Options tasks;
    Balancer::Mode balance = Balancer::Mode::off;
    uint32_t spare_cores = 0;                            // beyond those of workers
    const std::atomic<uint32_t>* all_clients = nullptr;  // of the service; null: it has no other worker
  };

  // Called on the worker's thread.
  struct Owner {
    std::function<void()> on_gone;  // a client has detached or died, after its last use
    std::function<void()> on_used;  // operations were begun, and show_use() was not called yet
  };
  Worker(Options options, std::unique_ptr<fabric::Named> fabric, engine::Neighbours& neighbours, Owner owner);
  ~Worker() override;

  // The status of binding the thread is known when this returns.
  base::Status start();
  void stop();
  pid_t thread() const { return thread_number_; }  // once started

  // From any thread: runs `task` on the worker's thread, soon.
  void run(std::function<void()> task);
  void send(const wire::Message& message, fabric::Bytes payload);
  void offer(uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address, uint64_t bytes);
  void add_client(std::unique_ptr<ServedClient> client, const std::shared_ptr<memory::Port>& memory);
  // A door that is over is gone, then `on_door_gone` is called on the worker's thread.
  void add_door(std::unique_ptr<AgentDoor> door, std::function<void()> on_door_gone);
  // From any thread: it has something to do.
  void ring();
  // From any thread: its clients, also those that come, are told that the service works for their job.
  void show_use();
  // From any thread: its clients are told that another service is in this one's place.
  void leave();
  // Opens the fabric unless it is open; how to reach this worker there. Not on the worker's thread; waits for that.
  base::Result<std::vector<uint8_t>> open_fabric();

  // From any thread: the worker writes its page, soon; unless it is still to write it for an earlier call. The page
  // stays until stop().
  void publish(session::WorkerPage& page);
  // The same for the agent whose clients have that outbox, of these alone: wire::EntryKind::seen. On the worker's thread.
  std::vector<uint8_t> show_to(const Outbox& door) const;

  // Observer
  void on_first_byte(engine::ClientId, uint64_t operation) override;
  void on_arrived(engine::ClientId, uint64_t operation) override;
  void on_step(engine::ClientId, uint64_t operation, uint32_t peer, uint64_t bytes, bool local) override;
  void on_served(engine::ClientId, uint64_t operation, uint32_t peer, uint64_t bytes, bool local) override;
  void on_coded(engine::ClientId, const engine::Coded& coded) override;
  void on_sampled(engine::ClientId, const codecs::Chooser::Sampled& sampled) override;
  void on_finished(engine::ClientId, uint64_t operation, base::Status status) override;
  void on_member_lost(engine::ClientId, uint64_t team, uint32_t rank, engine::Loss how) override;

 private:
  engine::Config engine_config();
  void loop();
  bool work();
  bool close_doors();
  void poll_events(int epoll, int timeout_ms);
  bool take_submissions();
  bool has_tasks();
  bool run_tasks();
  void read_socket(engine::ClientId id);
  bool has_time_for_guests() const;
  void charge();
  enum class Departure { detached, died, lost, silent };  // the last two: as the agent of its host
  void drop_client(engine::ClientId id, Departure how);
  ServedClient* served(engine::ClientId id) const {  // null: it has gone
    const auto found = clients_.find(id);
    return found == clients_.end() ? nullptr : found->second.get();
  }
  void fill_page(session::WorkerPage& page, const Outbox* door) const;

  // worker_sleep.cpp
  static constexpr std::chrono::milliseconds kTellSendersAfter{20};
  void sleep();
  int until_senders_are_told();
  int until_watch();
  int until_doors_look();
  bool arm();
  bool nap(uint64_t wait_ns);
  bool sleep_deaf(std::chrono::nanoseconds most, uint64_t wait_ns);
  bool may_stand_still() const;
  void wait_for_events(int timeout_ms, uint64_t wait_ns);
  bool leaves_core_to_tasks() const;

  Options options_;
  std::unique_ptr<fabric::Named> fabric_;
  std::unique_ptr<engine::Engine> engine_;
  ops::onesided::Target target_;
  Owner owner_;
  bool in_use_ = false;
  base::Fd epoll_;          // everything: clients_epoll_ and the fabric
  base::Fd clients_epoll_;  // doorbells and other workers
  base::Fd alarm_;
  Tasks tasks_to_run_;
  Balancer balancer_;
  Charges charges_;
  std::map<engine::ClientId, std::unique_ptr<ServedClient>> clients_;
  struct Door {
    std::unique_ptr<AgentDoor> door;
    std::function<void()> on_gone;
  };
  std::vector<Door> doors_;
  bool access_ended_ = false;  // on this thread, since the engine has begun its last round
  base::Nudge nudge_;
  std::chrono::nanoseconds nap_{0};
  uint64_t moved_before_nap_ = 0;
  uint64_t wakeups_ = 0;
  std::optional<std::chrono::steady_clock::time_point> senders_wait_since_;  // see engine::Engine::senders_wait
  std::optional<std::chrono::steady_clock::time_point> next_watch_;          // see engine::Engine::watch
  std::atomic<bool> to_publish_{false};
  std::mutex tasks_mutex_;
  std::vector<std::function<void()>> tasks_;
  std::atomic<bool> stopping_{false};
  pid_t thread_number_ = 0;
  std::thread thread_;
  static constexpr uint32_t kFileThreads = 4;
  memory::FileThreads file_threads_{kFileThreads};  // ends first: what they are at, they tell the engine
  const Workplace for_clients_{*engine_, target_, tasks_to_run_, balancer_, file_threads_, options_.engine.worker};
};

}  // namespace offpath::service
