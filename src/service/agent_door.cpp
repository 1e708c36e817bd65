// SPDX-License-Identifier: BSD-3-Clause
#include "service/agent_door.hpp"

#include "base/clock.hpp"
#include "base/epoll.hpp"
#include "base/log.hpp"
#include "service/placement.hpp"
#include "session/reception.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace offpath::service {

using base::Fd;
using base::LogLevel;
using base::Status;
using wire::EntryKind;

namespace {
constexpr uint64_t kAlarmTag = UINT64_MAX;
constexpr uint64_t kFabricTag = UINT64_MAX - 1;
constexpr int kFlushTimeoutMs = 1000;
constexpr uint32_t kRoundsBetweenLooks = 64;  // while there is much to do anyway
}  // namespace

AgentDoor::AgentDoor(std::unique_ptr<fabric::Fabric> endpoint, std::string cores, int first_message_timeout_ms,
                     uint64_t silence_ns, Run run, std::function<void(Newcomer)> admit)
    : cores_(std::move(cores)),
      first_message_timeout_ms_(first_message_timeout_ms),
      silence_(silence_ns),
      look_every_ns_(base::Silence::interval_ns(silence_ns)),
      run_(std::move(run)),
      admit_(std::move(admit)),
      outbox_(std::make_shared<Outbox>()),
      memory_(std::make_shared<agent::FarMemory>([outbox = outbox_] { outbox->ring(); })),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      link_(std::move(endpoint), *this) {
  base::watch(epoll_.get(), outbox_->event_fd(), kAlarmTag);
  base::watch(epoll_.get(), link_.fabric().event_fd(), kFabricTag);
  thread_ = std::thread([this] {
    [[maybe_unused]] const Status bound = bind_this_thread(cores_);  // the workers' binding says what is wrong
    ask_for_short_slices();
    loop();
  });
}

AgentDoor::~AgentDoor() {
  stopping_ = true;
  outbox_->ring();
  thread_.join();
}

void AgentDoor::loop() {
  const uint64_t began_ns = base::clock_ns();
  const auto waited_ms = [&] { return static_cast<int>((base::clock_ns() - began_ns) / 1000000); };
  for (uint32_t round = 1; !stopping_ && !link_.lost(); ++round) {
    const bool busy = work();
    if (busy && round % kRoundsBetweenLooks != 0) continue;
    const int left_ms = link_.connected() ? until_look() : first_message_timeout_ms_ - waited_ms();
    if (!link_.connected() && !link_.lost() && left_ms <= 0) break;
    sleep(busy ? 0 : left_ms);
  }
  work();
  if (!link_.lost()) link_.flush(kFlushTimeoutMs);
  for (const auto& [number, client] : clients_)
    send(client.socket.get(), &session::kHostIsLost, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  clients_.clear();
  memory_->lose();
  // What the fabric still has is not its owners' yet.
  link_.give_up("the door is closed");
  while (!memory_->idle()) link_.progress();
  base::log_write(LogLevel::info, "an agent has gone");
  ended_ = true;
  run_([] {});
}

bool AgentDoor::work() {
  bool busy = false;
  for (Outbox::Entry& entry : outbox_->take()) {
    link_.add(entry.kind, entry.client, entry.body);
    busy = true;
  }
  if (link_.connected()) busy |= memory_->move(link_);
  return link_.progress() || busy;
}

int AgentDoor::until_look() {
  if (look_every_ns_ == 0) return -1;
  const uint64_t now_ns = base::clock_ns();
  if (now_ns - looked_ns_ >= look_every_ns_) {
    const auto verdict = silence_.look(now_ns, answered_);
    looked_ns_ = now_ns;
    if (verdict == base::Silence::Verdict::ask) {
      answered_ = false;
      link_.add(EntryKind::ask, 0);
      return 0;
    }
    if (verdict == base::Silence::Verdict::silent) {
      link_.give_up("it gives no sign of life");
      return 0;
    }
  }
  return static_cast<int>((looked_ns_ + look_every_ns_ - now_ns) / 1000000) + 1;
}

void AgentDoor::sleep(int timeout_ms) {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, link_.fabric().arm() ? timeout_ms : 0);
  for (int i = 0; i < count; ++i) {
    const uint64_t tag = events[i].data.u64;
    if (tag == kAlarmTag) outbox_->heard();
    if (tag != kAlarmTag && tag != kFabricTag) on_readable(static_cast<uint32_t>(tag));
  }
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
  auto mirror = agent::Mirror::make();
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
               std::make_shared<memory::Aliases>(), std::make_unique<Reflection>(mirror.value(), outbox_, number)});
  run_([admit = admit_, newcomer] { admit(std::move(*newcomer)); });
}

void AgentDoor::refuse(uint32_t number, const Status& status) {
  base::log_write(LogLevel::warn, "refused a client of an agent: %s", status.text());
  session::AttachReply reply{};
  reply.version = session::kLinkVersion;
  session::fill_refusal(reply, status);
  link_.add_record(EntryKind::attached, number, reply);
}

void AgentDoor::ring(Client& client) {
  if (!client.mirror->wants_doorbell()) return;
  const uint8_t doorbell = session::kDoorbell;
  send(client.socket.get(), &doorbell, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void AgentDoor::take_submission(Client& client, fabric::Bytes body) {
  if (!client.mirror->take(body).ok()) return link_.give_up("it submits what makes no sense");
  ring(client);
}

// The worker says something.
void AgentDoor::on_readable(uint32_t number) {
  const auto found = clients_.find(number);
  if (found == clients_.end()) return;
  session::AttachReply reply;
  const ssize_t got = recv(found->second.socket.get(), &reply, sizeof(reply), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  work();  // what it has written before
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
    answered_ = true;
    return;
  }
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
      client.mirror->ask(asked.asked);
      return ring(client);
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
