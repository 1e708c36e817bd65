// SPDX-License-Identifier: BSD-3-Clause
// Service: accepts the clients of one job of one user on one node, and spreads them over workers. Ends when the last
// client and the last agent have gone, or when none came within the first-client timeout.
#pragma once

#include "base/fd.hpp"
#include "engine/engine.hpp"
#include "fabric/factory.hpp"
#include "service/agent_door.hpp"
#include "service/worker.hpp"
#include "session/link.hpp"
#include "session/observers.hpp"
#include "session/reception.hpp"
#include "session/replacement.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace offpath::service {

struct ServiceOptions {
  std::string cores;  // of workers and, on those that are left, helpers; empty: wherever the system likes
  uint32_t workers = 1;
  bool shares_cores = false;             // with the application
  std::chrono::nanoseconds coalesce{0};  // see Worker::Options
  int first_client_timeout_ms = 30000;
  engine::Config engine;
  Balancer::Mode balance = Balancer::Mode::on;
  Tasks::Options tasks;                             // executors 0: as many as there are spare cores, at least one
  std::string fabric;                               // its name; empty: the usual one
  session::OwnSocketName socket;                    // removed at the end
  uint8_t token[OFFPATH_TOKEN_BYTES] = {};          // of clients
  fabric::JobKey key{};                             // of services
  std::optional<session::Replacement> replacement;  // nothing: none can take its place
};

class Service : public engine::Neighbours {
 public:
  explicit Service(ServiceOptions options);
  ~Service() override;

  // Opens the fabric and starts the workers.
  base::Status start();
  // Serves on the listening socket until the last client has gone.
  void serve(int listening);

  // Neighbours
  void send(uint32_t worker, const wire::Message& message, fabric::Bytes payload) override;
  void offer(uint32_t worker, uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
             uint64_t bytes) override;

 private:
  // Takes in who has spoken. Whether it was a client, admitted or not.
  bool greet(session::Caller caller);
  void observe(session::Caller caller);
  void attach(session::Caller caller);
  // Has a client served, and tells it so.
  void admit(Newcomer client);
  // For the agent of a host whose DPU this is: its clients come by the door.
  void open_door(const session::Caller& caller);
  session::AttachReply welcome(const std::vector<uint8_t>& address) const;
  base::Result<std::vector<uint8_t>> make_door(uint32_t worker);
  base::Result<std::vector<uint8_t>> address_for(uint32_t flags, uint32_t worker);
  // Another service takes its place, if one can: its clients go there as they like, and it ends when the last one has.
  void be_replaced(const session::Caller& caller);
  void let_agents_go(const session::Caller& caller);
  void forget_one();
  void show_use();
  void forget_door();
  void remove_socket();
  // From any thread: on that of serve(), soon.
  void run(std::function<void()> task);
  void run_tasks();
  void wake();
  uint32_t helpers_count() const { return helpers_ == nullptr ? 0 : helpers_->count(); }

  ServiceOptions options_;
  session::ServiceId id_{};
  fabric::Made fabric_{};
  std::unique_ptr<kernels::Helpers> helpers_;  // null: no core is left for them
  std::vector<std::unique_ptr<Worker>> workers_;
  engine::ClientId next_client_ = 1;
  std::atomic<uint32_t> client_count_{0}, doors_count_{0};
  std::atomic<bool> socket_removed_{false}, in_use_{false};
  session::Observers observers_;
  session::LocalLobby lobby_;
  bool leaves_ = false;         // another one is in its place
  fabric::Made link_fabric_{};  // of the doors
  uint32_t agents_count_ = 0;   // so far
  std::mutex tasks_mutex_;
  std::vector<std::function<void()>> tasks_;
  base::Fd changed_;  // eventfd: a client has gone, or there is a task
};

}  // namespace offpath::service
