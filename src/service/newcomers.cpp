// SPDX-License-Identifier: BSD-3-Clause
// Who comes to a service: clients, observers, agents of hosts whose DPU this is, and who wants another service in its place.
#include "agent/host_memory.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "service/service.hpp"

#include <unistd.h>

#include <algorithm>

namespace offpath::service {

using base::Fd;
using base::LogLevel;
using base::Result;
using base::Status;
using engine::ClientId;

bool Service::greet(session::Caller caller) {
  using Kind = session::RequestKind;
  const bool is_client = !caller.wants(Kind::observe) && !caller.wants(Kind::replace);
  if (caller.wants(Kind::observe)) {
    observe(std::move(caller));
  } else if (caller.wants(Kind::replace)) {
    be_replaced(caller);
  } else if (caller.wants(Kind::agent)) {
    open_door(caller);
  } else {
    attach(std::move(caller));
  }
  return is_client;
}

void Service::observe(session::Caller caller) {
  session::AttachReply reply{};
  reply.workers = options_.workers;
  reply.clients = client_count_;
  observers_.greet(std::move(caller.socket), caller.credentials, caller.request, reply);
}

void Service::attach(session::Caller caller) {
  auto view = session::open_segment(caller, options_.token);
  if (!view.ok()) return session::refuse(caller.socket, view.status());
  const pid_t process = caller.credentials->pid;
  Fd alive = base::open_process(process);  // of the process that is then seen to be the right one
  const auto aliases = std::make_shared<memory::Aliases>();
  auto memory = agent::memory_on_this_machine(view.value(), process, aliases);
  if (!memory.ok()) return session::refuse(caller.socket, memory.status());
  admit({std::move(caller.socket), std::move(alive), process, caller.request.flags, std::move(view.value()),
         std::move(memory.value()), aliases, nullptr});
}

void Service::admit(Newcomer client) {
  const auto next = static_cast<uint32_t>((next_client_ - 1) % workers_.size());
  const uint32_t worker = client.worker < workers_.size() ? client.worker : next;
  const auto address = address_for(client.flags, worker);
  if (!address.ok()) return session::refuse(client.socket, address.status());
  session::AttachReply reply = welcome(address.value());
  const ClientId id = next_client_++;
  reply.flags = options_.shares_cores ? session::kServiceSharesCores : 0;
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

void Service::open_door(const session::Caller& caller) {
  const session::AttachRequest& request = caller.request;
  Status status = session::check_client(caller.credentials, request, options_.token);
  // An agent has a link to each worker; not every agent begins with the same.
  if (status.ok() && request.flags == 0) ++agents_count_;
  const auto address =
      status.ok() ? make_door(static_cast<uint32_t>((agents_count_ + request.flags) % workers_.size())) : status;
  if (!address.ok()) return session::refuse(caller.socket, address.status());
  const session::AttachReply reply = welcome(address.value());
  [[maybe_unused]] const auto sent = session::send_message(caller.socket.get(), &reply, sizeof(reply));
}

session::AttachReply Service::welcome(const std::vector<uint8_t>& address) const {
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  reply.address_bytes = static_cast<uint32_t>(std::min(address.size(), sizeof(reply.address)));
  std::copy_n(address.begin(), reply.address_bytes, reply.address);
  reply.workers = options_.workers;
  reply.helpers = helpers_count();
  reply.process = getpid();
  return reply;
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

void Service::be_replaced(const session::Caller& caller) {
  if (!options_.replacement)
    return session::refuse(caller.socket, Status::error(OFFPATH_ERR_NO_SERVICE, "the service was started by hand"));
  if (leaves_) return session::refuse(caller.socket, Status::error(OFFPATH_ERR_STATE, "%s", session::kIsReplaced));
  if (doors_count_ > 0) return let_agents_go(caller);
  if (!session::replace(*options_.replacement, caller.socket, caller.credentials, caller.request, client_count_,
                        options_.socket.path(), options_.token))
    return;
  leaves_ = true;
  socket_removed_ = true;  // that at the path is the other one's
  for (auto& worker : workers_) worker->leave();
}

// The next agent starts another one, with its guard; those that are here stay until they are replaced.
void Service::let_agents_go(const session::Caller& caller) {
  const Status status = session::check_peer(caller.credentials, caller.request);
  if (!status.ok()) return session::refuse(caller.socket, status);
  remove_socket();
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  reply.clients = client_count_;
  [[maybe_unused]] const auto sent = session::send_message(caller.socket.get(), &reply, sizeof(reply));
}

}  // namespace offpath::service
