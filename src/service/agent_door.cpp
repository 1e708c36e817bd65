// SPDX-License-Identifier: BSD-3-Clause
#include "service/agent_door.hpp"

#include "base/clock.hpp"
#include "base/epoll.hpp"
#include "base/log.hpp"
#include "session/reception.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace offpath::service {

using base::Fd;
using base::LogLevel;
using base::Status;
using wire::EntryKind;

namespace {
constexpr int kFlushTimeoutMs = 1000;
}  // namespace

AgentDoor::AgentDoor(Options options, std::unique_ptr<fabric::Fabric> endpoint, Run run,
                     std::function<void(Newcomer)> admit)
    : options_(std::move(options)),
      began_ns_(base::clock_ns()),
      silence_(options_.silence_ns),
      look_every_ns_(base::Silence::interval_ns(options_.silence_ns)),
      run_(std::move(run)),
      admit_(std::move(admit)),
      outbox_(std::make_shared<Outbox>()),
      memory_(std::make_shared<agent::FarMemory>(options_.wake)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      link_(std::move(endpoint), *this) {}

AgentDoor::~AgentDoor() {
  take_outbox();
  if (!link_.lost()) link_.flush(kFlushTimeoutMs);
  for (const auto& [number, client] : clients_)
    send(client.socket.get(), silent_ ? &session::kHostIsSilent : &session::kHostIsLost, 1,
         MSG_NOSIGNAL | MSG_DONTWAIT);
  clients_.clear();
  outbox_->close();
  memory_->lose();
  // What the fabric still has is not its owners' yet.
  link_.give_up("the door is closed");
  while (!memory_->idle()) link_.progress();
  base::log_write(LogLevel::info, "an agent has gone");
}

bool AgentDoor::take() { return link_.progress(); }

bool AgentDoor::give() {
  if (!link_.connected() || (outbox_->empty() && !memory_->waits())) return false;
  take_outbox();
  memory_->move(link_);
  link_.progress();
  return true;
}

void AgentDoor::take_outbox() {
  for (const Outbox::Entry& entry : outbox_->take()) link_.add(entry.kind, entry.client, entry.body);
}

int AgentDoor::until_look() {
  const uint64_t now_ns = base::clock_ns();
  if (!link_.connected()) {
    const int left_ms = options_.first_message_timeout_ms - static_cast<int>((now_ns - began_ns_) / 1000000);
    nobody_came_ = left_ms <= 0;
    return std::max(left_ms, 0);
  }
  if (look_every_ns_ == 0) return -1;
  if (now_ns - looked_ns_ >= look_every_ns_) {
    const auto verdict = silence_.look(now_ns, answered_, [&] {
      link_.add_record(EntryKind::ask, 0, wire::SignOfLife{silence_.unanswered_ns()});
      return uint64_t{0};  // only the agent knows
    });
    looked_ns_ = now_ns;
    if (verdict == base::Silence::Verdict::ask) {
      answered_ = false;
      link_.add_record(EntryKind::ask, 0, wire::SignOfLife{0});
      return 0;
    }
    if (verdict == base::Silence::Verdict::silent) {
      silent_ = true;
      link_.give_up("it gives no sign of life");
      return 0;
    }
  }
  return static_cast<int>((looked_ns_ + look_every_ns_ - now_ns) / 1000000) + 1;
}

void AgentDoor::look() {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < count; ++i) on_readable(static_cast<uint32_t>(events[i].data.u64));
}

// ---- clients --------------------------------------------------------------------------------------------------------

void AgentDoor::attach(uint32_t number, fabric::Bytes body) {
  agent::AttachBody request;
  if (body.size() != sizeof(request) || clients_.contains(number))
    return link_.give_up("it attaches what is no client");
  memcpy(&request, body.data(), sizeof(request));
  if (request.link_version != session::kLinkVersion || request.segment_version != session::kVersion) {
    return refuse(
        number, Status::error(OFFPATH_ERR_NO_SERVICE, "host and DPU run different releases. Install the same on both"));
  }
  auto mirror = agent::Mirror::make(request.shared_address, request.shared_bytes);
  if (!mirror.ok()) return refuse(number, mirror.status());
  auto view = session::SegmentView::open(mirror.value()->take_memory());
  int ends[2];
  if (!view.ok()) return refuse(number, view.status());
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return refuse(number, Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a socket"));
  Client& client = clients_[number] = {Fd(ends[0]), mirror.value()};
  base::watch(epoll_.get(), client.socket.get(), number);
  auto newcomer = std::make_shared<Newcomer>(  // std::function must be copyable
      Newcomer{Fd(ends[1]), Fd(), request.process, request.flags, std::move(view.value()), memory_->port_of(number),
               std::make_shared<memory::Aliases>(), std::make_unique<Reflection>(mirror.value(), outbox_, number),
               options_.worker});
  run_([admit = admit_, newcomer] { admit(std::move(*newcomer)); });
}

void AgentDoor::refuse(uint32_t number, const Status& status) {
  base::log_write(LogLevel::warn, "refused a client of an agent: %s", status.text());
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  session::fill_refusal(reply, status);
  link_.add_record(EntryKind::attached, number, reply);
}

void AgentDoor::take_submission(Client& client, fabric::Bytes body) {
  if (!client.mirror->take(body).ok()) return link_.give_up("it submits what makes no sense");
}

// The worker says something.
void AgentDoor::on_readable(uint32_t number) {
  const auto found = clients_.find(number);
  if (found == clients_.end()) return;
  session::AttachReply reply;
  const ssize_t got = recv(found->second.socket.get(), &reply, sizeof(reply), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  take_outbox();  // what it has written before
  if (got == sizeof(reply)) {
    link_.add_record(EntryKind::attached, number, reply);
    if (reply.status != OFFPATH_OK) clients_.erase(number);
    return;
  }
  link_.add(got == 1 ? EntryKind::detached : EntryKind::gone, number);
  clients_.erase(number);
}

// ---- from the agent -------------------------------------------------------------------------------------------------

agent::Place AgentDoor::place_for(const wire::LinkMessage& message, size_t bytes) {
  return memory_->place_for(message, bytes);
}

void AgentDoor::on_message(const wire::LinkMessage& message, fabric::Bytes payload) {
  memory_->on_message(message, payload);
}

void AgentDoor::on_sent(uint64_t number) { memory_->on_sent(number); }

void AgentDoor::on_entry(const wire::LinkEntry& entry) {
  if (entry.kind == EntryKind::hello) {
    if (!link_.connect(entry.body).ok()) link_.give_up("it does not say where it is");
    return;
  }
  if (entry.kind == EntryKind::alive) {
    wire::SignOfLife sign{};
    if (entry.body.size() != sizeof(sign)) return link_.give_up("it answers what makes no sense");
    memcpy(&sign, entry.body.data(), sizeof(sign));
    answered_ = true;
    silence_.note_starved(sign.waited_ns);
    return;
  }
  if (entry.kind == EntryKind::look) return link_.add(EntryKind::seen, 0, options_.show(*outbox_));
  if (entry.kind == EntryKind::attach) return attach(entry.client, entry.body);
  const auto found = clients_.find(entry.client);
  if (found == clients_.end()) return;  // it has gone meanwhile
  Client& client = found->second;
  agent::AskedBody asked;
  switch (entry.kind) {
    case EntryKind::submit:
      return take_submission(client, entry.body);
    case EntryKind::asked:
      if (entry.body.size() != sizeof(asked)) return link_.give_up("it asks what makes no sense");
      memcpy(&asked, entry.body.data(), sizeof(asked));
      return client.mirror->ask(asked.asked);
    case EntryKind::detach:
      send(client.socket.get(), &session::kDetach, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      return;
    case EntryKind::gone:
      clients_.erase(found);
      return;
    default:
      return link_.give_up("it says what is the service's to say");
  }
}

void AgentDoor::on_lost(const char* why) { base::log_write(LogLevel::warn, "the agent of a host is lost: %s", why); }

}  // namespace offpath::service
