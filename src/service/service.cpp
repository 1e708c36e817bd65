// SPDX-License-Identifier: BSD-3-Clause
#include "service/service.hpp"

#include "base/log.hpp"
#include "base/random.hpp"
#include "seal/job_key.hpp"
#include "service/placement.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace offpath::service {

using base::LogLevel;
using base::Status;

namespace {
constexpr int kLingerMs = 50;  // for clients that attach while the last one leaves
constexpr std::chrono::microseconds kSpin{20};

// Cores that no worker fills. The application's own have none to spare.
uint32_t helper_count(const ServiceOptions& options) {
  const uint32_t cores = options.shares_cores ? 0 : count_cores(options.cores);
  return cores - std::min(cores, options.workers);
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      observers_({.pages = options_.workers, .shares_cores = options_.shares_cores},
                 [this](uint32_t worker, session::WorkerPage& page) { workers_[worker]->publish(page); }),
      lobby_({session::kAttachTimeoutNs}),
      changed_(eventfd(0, EFD_CLOEXEC)) {
  base::fill_random(id_.data(), id_.size());
  const auto job = seal::name_of_job(options_.key);
  static_assert(job.size() == session::kJobNameBytes);
  std::copy(job.begin(), job.end(), id_.begin());
}

Service::~Service() {
  for (auto& worker : workers_) worker->stop();
}

Status Service::start() {
  auto fabric = fabric::make(options_.fabric, options_.key);
  if (!fabric.ok()) return fabric.status();
  fabric_ = std::move(fabric.value());
  if (const uint32_t helpers = helper_count(options_); helpers > 0) {
    helpers_ = std::make_unique<kernels::Helpers>(helpers, [cores = options_.cores] {
      [[maybe_unused]] const Status bound = bind_this_thread(cores);  // the workers' binding has shown that it works
      ask_for_short_slices();
    });
    options_.engine.helpers = helpers_.get();
  }
  for (uint32_t i = 0; i < options_.workers; ++i) {
    auto endpoint = std::make_unique<fabric::Named>(fabric_.name, *fabric_.context);
    Worker::Options worker;
    worker.cores = options_.cores;
    worker.spin = options_.shares_cores ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(kSpin);
    worker.coalesce = options_.coalesce;
    worker.engine = options_.engine;
    worker.engine.worker = i;
    worker.tasks = options_.tasks;
    worker.balance = options_.balance;
    worker.all_clients = &client_count_;
    worker.spare_cores = helper_count(options_) / options_.workers;
    Executors::Options& executors = worker.tasks.executors;
    if (executors.count == 0) executors.count = std::clamp(worker.spare_cores, 1U, tasks::kMaxExecutors);
    executors.spin = executors.count <= worker.spare_cores;
    workers_.push_back(std::make_unique<Worker>(worker, std::move(endpoint), *this,
                                                Worker::Owner{[this] { forget_one(); }, [this] { show_use(); }}));
  }
  for (auto& worker : workers_) {
    if (const Status status = worker->start(); !status.ok()) return status;
  }
  base::log_write(LogLevel::info, "serving with %u worker(s) and %u helper(s) on cores '%s'%s", options_.workers,
                  helpers_count(), options_.cores.c_str(),
                  options_.shares_cores ? ", shared with the application" : "");
  return {};
}

void Service::serve(int listening) {
  lobby_.open(listening);
  bool had_client = false;
  while (true) {
    pollfd waits[3] = {{lobby_.event_fd(), POLLIN, 0}, {changed_.get(), POLLIN, 0}, {observers_.event_fd(), POLLIN, 0}};
    const bool none = client_count_ == 0 && doors_count_ == 0 && !lobby_.any();
    const int tick = observers_.tick_if_due();
    const int timeout = !none ? tick : had_client || leaves_ ? kLingerMs : options_.first_client_timeout_ms;
    const int ready = poll(waits, 3, lobby_.wait_ms(timeout));
    if (ready < 0 && errno != EINTR) break;
    if (ready == 0 && none) break;
    if ((waits[2].revents & POLLIN) != 0) observers_.look();
    if ((waits[1].revents & POLLIN) != 0) {
      uint64_t value;
      [[maybe_unused]] const ssize_t got = read(changed_.get(), &value, sizeof(value));
      run_tasks();
    }
    session::receive(lobby_, "service", [&](session::Caller caller) { had_client |= greet(std::move(caller)); });
  }
  base::log_write(LogLevel::info, "ends: no clients");
  remove_socket();
  if (observers_.any()) observers_.tick();  // their last look
  for (auto& worker : workers_) worker->stop();
}

void Service::run(std::function<void()> task) {
  {
    std::lock_guard lock(tasks_mutex_);
    tasks_.push_back(std::move(task));
  }
  wake();
}

void Service::run_tasks() {
  std::vector<std::function<void()>> tasks;
  {
    std::lock_guard lock(tasks_mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
}

// Before the last client hears that it has left: a launcher ends whatever its job has left running then (Slurm with
// control groups does), and the file would stay. A client that comes later starts another service.
void Service::forget_one() {
  if (--client_count_ == 0 && doors_count_ == 0) remove_socket();
  wake();
}

// Ranks that have given it nothing wait for those that have, and would keep the core from them, and from the service.
void Service::show_use() {
  if (in_use_.exchange(true)) return;
  for (auto& worker : workers_) worker->show_use();
}

void Service::forget_door() {
  --doors_count_;
  wake();
}

void Service::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(changed_.get(), &one, sizeof(one));
}

// Once: at that path there may be another service's later.
void Service::remove_socket() {
  if (!socket_removed_.exchange(true)) options_.socket.remove();
}

void Service::send(uint32_t worker, const wire::Message& message, fabric::Bytes payload) {
  if (worker < workers_.size()) workers_[worker]->send(message, payload);
}

void Service::offer(uint32_t worker, uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
                    uint64_t bytes) {
  if (worker < workers_.size()) workers_[worker]->offer(pull_id, std::move(memory), address, bytes);
}

}  // namespace offpath::service
