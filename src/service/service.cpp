// SPDX-License-Identifier: BSD-3-Clause
#include "service/service.hpp"

#include "base/log.hpp"
#include "base/process.hpp"
#include "base/random.hpp"
#include "service/placement.hpp"

#include <poll.h>
#include <sodium.h>
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
constexpr int kAttachTimeoutMs = 2000;
constexpr int kLingerMs = 50;  // for clients that attach while the last one leaves
constexpr std::chrono::microseconds kSpin{20};

void fill_refusal(session::AttachReply& reply, const Status& status) {
  reply.status = status.code();
  snprintf(reply.text, sizeof(reply.text), "%s", status.text());
}

// Says no. Reads first: closing a socket with something unread takes the answer away from the other side.
void turn_away(const Fd& socket, const Status& reason) {
  session::AttachRequest request{};
  [[maybe_unused]] const auto asked =
      session::receive_message(socket.get(), &request, sizeof(request), kAttachTimeoutMs);
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  fill_refusal(reply, reason);
  [[maybe_unused]] const auto status = session::send_message(socket.get(), &reply, sizeof(reply));
}

// Cores that no worker fills. The application's own have none to spare.
uint32_t helper_count(const ServiceOptions& options) {
  const uint32_t cores = options.shares_cores ? 0 : count_cores(options.cores);
  return cores - std::min(cores, options.workers);
}

// Is it of this user and this release?
Status check_peer(const Result<session::PeerCredentials>& credentials, const session::AttachRequest& request) {
  if (!credentials.ok()) return credentials.status();
  if (credentials->uid != getuid()) {
    return Status::error(OFFPATH_ERR_PERMISSION, "the service belongs to another user");
  }
  if (request.version != session::kLinkVersion) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "library and service are of different releases. Install them together");
  }
  return {};
}

// What a client sent, checked: the view of its segment.
Result<session::SegmentView> open_segment(const Result<session::PeerCredentials>& credentials,
                                          const session::AttachRequest& request, Result<Fd>& segment_fd,
                                          const uint8_t* token) {
  if (!segment_fd.ok()) return segment_fd.status();
  if (const Status status = check_peer(credentials, request); !status.ok()) return status;
  if (sodium_memcmp(request.token, token, OFFPATH_TOKEN_BYTES) != 0) {  // its time tells nothing about the token
    return Status::error(OFFPATH_ERR_PERMISSION, "the service belongs to another job");
  }
  auto segment = base::Memfd::adopt(std::move(segment_fd.value()), request.segment_bytes);
  if (!segment.ok()) return segment.status();
  segment->close_descriptor();  // there may be many clients
  return session::SegmentView::open(std::move(segment.value()));
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      observers_(options_.workers, options_.shares_cores,
                 [this](uint32_t worker, session::WorkerPage& page) { workers_[worker]->publish(page); }),
      changed_(eventfd(0, EFD_CLOEXEC)) {
  base::fill_random(id_.data(), id_.size());
}

Service::~Service() {
  for (auto& worker : workers_) worker->stop();
}

Status Service::start() {
  fabric::JobKey key;
  std::copy(std::begin(options_.token), std::end(options_.token), key.begin());
  auto fabric = fabric::make(options_.fabric, key);
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
    const bool none = client_count_ == 0;
    const int tick = observers_.any() ? Observers::kTickMs : -1;
    const int timeout = !none ? tick : had_client ? kLingerMs : options_.first_client_timeout_ms;
    const int ready = poll(waits, 3, timeout);
    if (ready < 0 && errno != EINTR) break;
    if (ready == 0 && client_count_ == 0) break;
    if (ready == 0) observers_.tick();
    if ((waits[2].revents & POLLIN) != 0) observers_.look();
    if ((waits[1].revents & POLLIN) != 0) {
      uint64_t value;
      [[maybe_unused]] const ssize_t got = read(changed_.get(), &value, sizeof(value));
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

void Service::refuse(int listening, const Status& reason) {
  pollfd wait{listening, POLLIN, 0};
  while (poll(&wait, 1, kAttachTimeoutMs) > 0) {
    const Doorman::Guest guest = doorman_.let_in(listening);
    if (guest.socket.valid()) turn_away(guest.socket, reason);
  }
}

bool Service::greet(int listening) {
  auto [socket, no_room] = doorman_.let_in(listening);
  if (!socket.valid()) return false;
  if (no_room) {
    turn_away(socket,
              Status::error(OFFPATH_ERR_NO_SERVICE,
                            "the service has no file descriptor left for another client. Raise 'ulimit -n' (the "
                            "hard limit, too)"));
    return true;
  }
  const auto credentials = session::peer_credentials(socket.get());
  session::AttachRequest request{};
  auto segment_fd = session::receive_message(socket.get(), &request, sizeof(request), kAttachTimeoutMs);
  if (segment_fd.ok() && request.kind == static_cast<uint32_t>(session::RequestKind::observe)) {
    observe(std::move(socket), credentials, request);
    return false;
  }
  attach(std::move(socket), credentials, request, std::move(segment_fd));
  return true;
}

void Service::observe(Fd socket, const Result<session::PeerCredentials>& credentials,
                      const session::AttachRequest& request) {
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  Status status = check_peer(credentials, request);
  int published = -1;
  if (status.ok()) {
    const auto admitted = observers_.admit();
    status = admitted.status();
    if (status.ok()) published = admitted.value();
  }
  if (!status.ok()) fill_refusal(reply, status);
  reply.workers = options_.workers;
  reply.clients = client_count_;
  reply.process = getpid();
  const Status sent = session::send_message(socket.get(), &reply, sizeof(reply), published);
  if (sent.ok() && published >= 0) observers_.add(std::move(socket));
}

void Service::attach(Fd socket, const Result<session::PeerCredentials>& credentials,
                     const session::AttachRequest& request, Result<Fd> segment_fd) {
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  const int raw = socket.get();
  auto view = open_segment(credentials, request, segment_fd, options_.token);
  Status status = view.status();
  std::shared_ptr<memory::Port> memory;
  const auto aliases = std::make_shared<memory::Aliases>();
  Fd alive;
  if (status.ok()) {
    alive = base::open_process(credentials->pid);  // of the process that is then seen to be the right one
    memory = memory::make_mapped({view->shared_address(), view->shared_bytes(), view->shared_data(), view->mapping()},
                                 memory::make_cma(credentials->pid), aliases);
    const session::SegmentHeader& header = view->header();
    uint64_t value = 0;
    status = memory->read(&value, header.probe_address, sizeof(value)).status();
    if (status.ok() && value != header.probe_value) {
      status = Status::error(OFFPATH_ERR_PERMISSION,
                             "the service reads another process than its client (different "
                             "process id namespaces). Run both in one");
    }
  }
  const auto worker = static_cast<uint32_t>((next_client_ - 1) % workers_.size());
  if (status.ok()) {
    const auto bytes = address_for(request, worker);
    status = bytes.status();
    if (status.ok()) {
      reply.address_bytes = static_cast<uint32_t>(bytes.value().size());
      std::copy(bytes.value().begin(), bytes.value().end(), reply.address);
    }
  }
  if (!status.ok()) {
    base::log_write(LogLevel::warn, "refused a client: %s", status.text());
    fill_refusal(reply, status);
    [[maybe_unused]] const auto sent = session::send_message(raw, &reply, sizeof(reply));
    return;
  }
  const ClientId id = next_client_++;
  reply.flags = options_.shares_cores ? session::kServiceSharesCores : 0;
  reply.workers = options_.workers;
  reply.helpers = helpers_count();
  reply.process = getpid();
  reply.clients = ++client_count_;
  base::log_write(LogLevel::info, "client %llu is process %d", static_cast<unsigned long long>(id), credentials->pid);
  [[maybe_unused]] const auto sent = session::send_message(raw, &reply, sizeof(reply));
  workers_[worker]->add_client(std::make_unique<ServedClient>(id, credentials->pid, std::move(alive), std::move(socket),
                                                              std::move(view.value()), id_, aliases),
                               memory);
}

Result<std::vector<uint8_t>> Service::address_for(const session::AttachRequest& request, uint32_t worker) {
  session::MemberAddress address;
  address.service = id_;
  address.worker = worker;
  if ((request.flags & session::kNodeOnly) == 0) {
    auto fabric = workers_[worker]->open_fabric();
    if (!fabric.ok()) return fabric.status();
    address.fabric = std::move(fabric.value());
  }
  return address.encode();
}

// Before the last client hears that it has left: a launcher ends whatever its job has left running then (Slurm with
// control groups does), and the file would stay. Who comes later starts another service.
void Service::forget_one() {
  if (--client_count_ == 0) remove_socket();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(changed_.get(), &one, sizeof(one));
}

// Once: at that path there may be another service's later.
void Service::remove_socket() {
  if (!socket_removed_.exchange(true)) unlink(options_.socket_path.c_str());
}

void Service::send(uint32_t worker, const wire::Message& message, fabric::Bytes payload) {
  if (worker < workers_.size()) workers_[worker]->send(message, payload);
}

void Service::offer(uint32_t worker, uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
                    uint64_t bytes) {
  if (worker < workers_.size()) workers_[worker]->offer(pull_id, std::move(memory), address, bytes);
}

}  // namespace offpath::service
