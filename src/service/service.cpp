// SPDX-License-Identifier: BSD-3-Clause
#include "service/service.hpp"

#include "agent/host_memory.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/random.hpp"
#include "seal/job_key.hpp"
#include "service/placement.hpp"
#include "session/reception.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace offpath::service {

using base::Fd;
using base::LogLevel;
using base::Result;
using base::Status;
using engine::ClientId;

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
    worker.spare_cores = helper_count(options_) / options_.workers;
    if (worker.tasks.executors == 0) worker.tasks.executors = std::clamp(worker.spare_cores, 1U, tasks::kMaxExecutors);
    worker.tasks.spin = worker.tasks.executors <= worker.spare_cores;
    workers_.push_back(std::make_unique<Worker>(worker, std::move(endpoint), *this, [this] { forget_one(); }));
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
  bool had_client = false;
  while (true) {
    pollfd waits[3] = {{listening, POLLIN, 0}, {changed_.get(), POLLIN, 0}, {observers_.event_fd(), POLLIN, 0}};
    const bool none = client_count_ == 0 && doors_count_ == 0;
    const int tick = observers_.tick_if_due();
    const int timeout = !none ? tick : had_client || leaves_ ? kLingerMs : options_.first_client_timeout_ms;
    const int ready = poll(waits, 3, timeout);
    if (ready < 0 && errno != EINTR) break;
    if (ready == 0 && none) break;
    if ((waits[2].revents & POLLIN) != 0) observers_.look();
    if ((waits[1].revents & POLLIN) != 0) {
      uint64_t value;
      [[maybe_unused]] const ssize_t got = read(changed_.get(), &value, sizeof(value));
      run_tasks();
    }
    if ((waits[0].revents & POLLIN) != 0) {
      had_client |= greet(listening);
    }
  }
  base::log_write(LogLevel::info, "ends: no clients");
  remove_socket();
  if (observers_.any()) observers_.tick();  // their last look
  for (auto& worker : workers_) worker->stop();
}

bool Service::greet(int listening) {
  auto [socket, no_room] = doorman_.let_in(listening);
  if (!socket.valid()) return false;
  if (no_room) {
    session::turn_away(
        socket, Status::error(OFFPATH_ERR_NO_SERVICE,
                              "the service has no file descriptor left for another client. Raise 'ulimit -n' (the "
                              "hard limit, too)"));
    return true;
  }
  const auto credentials = session::peer_credentials(socket.get());
  session::AttachRequest request{};
  auto segment_fd = session::receive_message(socket.get(), &request, sizeof(request), session::kAttachTimeoutMs);
  if (segment_fd.ok() && request.kind == static_cast<uint32_t>(session::RequestKind::observe)) {
    observe(std::move(socket), credentials, request);
    return false;
  }
  if (segment_fd.ok() && request.kind == static_cast<uint32_t>(session::RequestKind::agent)) {
    open_door(socket, credentials, request);
    return true;
  }
  if (segment_fd.ok() && request.kind == static_cast<uint32_t>(session::RequestKind::replace)) {
    be_replaced(socket, credentials, request);
    return false;
  }
  attach(std::move(socket), credentials, request, std::move(segment_fd));
  return true;
}

void Service::observe(Fd socket, const Result<session::PeerCredentials>& credentials,
                      const session::AttachRequest& request) {
  session::AttachReply reply{};
  reply.workers = options_.workers;
  reply.clients = client_count_;
  observers_.greet(std::move(socket), credentials, request, reply);
}

void Service::attach(Fd socket, const Result<session::PeerCredentials>& credentials,
                     const session::AttachRequest& request, Result<Fd> segment_fd) {
  auto view = session::open_segment(credentials, request, segment_fd, options_.token);
  if (!view.ok()) return refuse(socket, view.status());
  Fd alive = base::open_process(credentials->pid);  // of the process that is then seen to be the right one
  const auto aliases = std::make_shared<memory::Aliases>();
  auto memory = agent::memory_on_this_machine(view.value(), credentials->pid, aliases);
  if (!memory.ok()) return refuse(socket, memory.status());
  admit({std::move(socket), std::move(alive), credentials->pid, request.flags, std::move(view.value()),
         std::move(memory.value()), aliases, nullptr});
}

void Service::refuse(const Fd& socket, const Status& status) {
  base::log_write(LogLevel::warn, "refused a client: %s", status.text());
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  session::fill_refusal(reply, status);
  [[maybe_unused]] const auto sent = session::send_message(socket.get(), &reply, sizeof(reply));
}

void Service::admit(Newcomer client) {
  const auto next = static_cast<uint32_t>((next_client_ - 1) % workers_.size());
  const uint32_t worker = client.worker < workers_.size() ? client.worker : next;
  const auto address = address_for(client.flags, worker);
  if (!address.ok()) return refuse(client.socket, address.status());
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  reply.address_bytes = static_cast<uint32_t>(address.value().size());
  std::copy(address.value().begin(), address.value().end(), reply.address);
  const ClientId id = next_client_++;
  reply.flags = options_.shares_cores ? session::kServiceSharesCores : 0;
  reply.workers = options_.workers;
  reply.helpers = helpers_count();
  reply.process = getpid();
  reply.thread = workers_[worker]->thread();
  reply.clients = ++client_count_;
  if (leaves_)
    client.view.header().leaves.store(1, std::memory_order_release);  // it was on its way to the socket before
  base::log_write(LogLevel::info, "client %llu is process %d%s", static_cast<unsigned long long>(id), client.process,
                  client.reflection == nullptr ? "" : " of an agent's host");
  [[maybe_unused]] const auto sent = session::send_message(client.socket.get(), &reply, sizeof(reply));
  workers_[worker]->add_client(
      std::make_unique<ServedClient>(id, client.process, std::move(client.alive), std::move(client.socket),
                                     std::move(client.view), id_, client.aliases, std::move(client.reflection)),
      client.memory);
}

void Service::open_door(const Fd& socket, const Result<session::PeerCredentials>& credentials,
                        const session::AttachRequest& request) {
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  Status status = session::check_client(credentials, request, options_.token);
  // An agent has a link to each worker; not every agent begins with the same.
  if (status.ok() && request.flags == 0) ++agents_count_;
  const auto address =
      status.ok() ? make_door(static_cast<uint32_t>((agents_count_ + request.flags) % workers_.size())) : status;
  if (address.ok()) {
    reply.address_bytes = static_cast<uint32_t>(std::min(address->size(), sizeof(reply.address)));
    std::copy_n(address->begin(), reply.address_bytes, reply.address);
  } else {
    session::fill_refusal(reply, address.status());
  }
  reply.workers = options_.workers;
  reply.helpers = helpers_count();
  reply.process = getpid();
  [[maybe_unused]] const auto sent = session::send_message(socket.get(), &reply, sizeof(reply));
}

Result<std::vector<uint8_t>> Service::make_door(uint32_t worker) {
  if (link_fabric_.context == nullptr) {
    auto made = fabric::make("tcp", options_.key);
    if (!made.ok()) return made.status();
    link_fabric_ = std::move(made.value());
  }
  auto endpoint = link_fabric_.context->make_endpoint();
  if (!endpoint.ok()) return endpoint.status();
  std::vector<uint8_t> address = endpoint.value()->address();
  AgentDoor::Options door;
  door.worker = worker;
  door.first_message_timeout_ms = options_.first_client_timeout_ms;
  door.silence_ns = options_.engine.silence_ns;
  door.wake = [served_by = workers_[worker].get()] { served_by->ring(); };
  door.show = [served_by = workers_[worker].get()](const Outbox& clients) { return served_by->show_to(clients); };
  ++doors_count_;
  workers_[worker]->add_door(
      std::make_unique<AgentDoor>(
          std::move(door), std::move(endpoint.value()), [this](std::function<void()> task) { run(std::move(task)); },
          [this](Newcomer client) { admit(std::move(client)); }),
      [this] { forget_door(); });
  return address;
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

Result<std::vector<uint8_t>> Service::address_for(uint32_t flags, uint32_t worker) {
  session::MemberAddress address;
  address.service = id_;
  address.worker = worker;
  if ((flags & session::kNodeOnly) == 0) {
    auto fabric = workers_[worker]->open_fabric();
    if (!fabric.ok()) return fabric.status();
    address.fabric = std::move(fabric.value());
  }
  return address.encode();
}

void Service::be_replaced(const Fd& asker, const Result<session::PeerCredentials>& credentials,
                          const session::AttachRequest& request) {
  if (!options_.replacement)
    return refuse(asker, Status::error(OFFPATH_ERR_NO_SERVICE, "the service was started by hand"));
  if (leaves_) return refuse(asker, Status::error(OFFPATH_ERR_STATE, "%s", session::kIsReplaced));
  if (doors_count_ > 0) return let_agents_go(asker, credentials, request);
  if (!session::replace(*options_.replacement, asker, credentials, request, client_count_, options_.socket.path(),
                        options_.token))
    return;
  leaves_ = true;
  socket_removed_ = true;  // that at the path is the other one's
  for (auto& worker : workers_) worker->leave();
}

// The next agent starts another one, with its guard; those that are here stay until they are replaced.
void Service::let_agents_go(const Fd& asker, const Result<session::PeerCredentials>& credentials,
                            const session::AttachRequest& request) {
  const Status status = session::check_peer(credentials, request);
  if (!status.ok()) return refuse(asker, status);
  remove_socket();
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  reply.clients = client_count_;
  [[maybe_unused]] const auto sent = session::send_message(asker.get(), &reply, sizeof(reply));
}

// Before the last client hears that it has left: a launcher ends whatever its job has left running then (Slurm with
// control groups does), and the file would stay. A client that comes later starts another service.
void Service::forget_one() {
  if (--client_count_ == 0 && doors_count_ == 0) remove_socket();
  wake();
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
