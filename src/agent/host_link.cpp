// SPDX-License-Identifier: BSD-3-Clause
#include "agent/host_link.hpp"

#include "agent/host_memory.hpp"
#include "base/epoll.hpp"
#include "base/log.hpp"
#include "session/reception.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <cstring>

namespace offpath::agent {

using base::Status;
using wire::EntryKind;

namespace {
constexpr uint64_t kFabricTag = 0;  // clients' numbers start at 1
constexpr uint64_t kProcessBit = uint64_t{1} << 63;
}  // namespace

HostLink::HostLink(std::unique_ptr<fabric::Fabric> fabric, std::function<void()> on_gone)
    : on_gone_(std::move(on_gone)), epoll_(epoll_create1(EPOLL_CLOEXEC)), link_(std::move(fabric), *this) {
  base::watch(epoll_.get(), link_.fabric().event_fd(), kFabricTag);
}

Status HostLink::connect(const std::vector<uint8_t>& address) {
  const Status status = link_.connect(address);
  if (status.ok()) link_.add(EntryKind::hello, 0, link_.fabric().address());
  return status;
}

void HostLink::attach(HostClient client, uint32_t flags) {
  const uint32_t number = next_client_++;
  base::watch(epoll_.get(), client.socket(), number);
  if (client.alive() >= 0) base::watch(epoll_.get(), client.alive(), kProcessBit | number);
  const session::SegmentHeader& head = client.header();
  link_.add_record(EntryKind::attach, number,
                   AttachBody{session::kLinkVersion, session::kVersion, flags, client.process(), head.shared_address,
                              head.shared_bytes});
  clients_.emplace(number, std::move(client));
}

void HostLink::leave() {
  for (auto& [number, client] : clients_) client.leave();
}

void HostLink::publish(uint32_t number, session::WorkerPage& page) {
  if (page_.want(number, page)) link_.add(EntryKind::look, 0);
}

// ---- rounds ---------------------------------------------------------------------------------------------------------

bool HostLink::take_submissions(uint32_t number, HostClient& client) {
  bool any = false;
  while (const auto body = client.take_submission()) {
    link_.add(EntryKind::submit, number, *body);
    any = true;
  }
  if (const auto asked = client.take_question()) {
    link_.add_record(EntryKind::asked, number, AskedBody{*asked, 0});
    any = true;
  }
  return any;
}

bool HostLink::round() {
  bool busy = look();
  uint32_t broken = 0;
  for (auto& [number, client] : clients_) {
    busy |= take_submissions(number, client);
    if (client.broken()) broken = number;
  }
  if (broken != 0) drop(broken);
  busy |= link_.progress();
  return busy;
}

// Announce, look again, then sleep: whoever submits after the look rings the doorbell.
bool HostLink::prepare_sleep() {
  bool pending = false;
  for (const auto& [number, client] : clients_) {
    client.header().worker_sleeps.store(1, std::memory_order_seq_cst);
    pending |= client.has_submission();
  }
  return !pending && link_.fabric().arm();
}

bool HostLink::any_computes() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const auto& entry) { return entry.second.computes(); });
}

void HostLink::end_sleep() {
  for (const auto& [number, client] : clients_) client.header().worker_sleeps.store(0, std::memory_order_relaxed);
}

bool HostLink::look() {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, 0);
  bool any = false;
  for (int i = 0; i < count; ++i) {
    const uint64_t tag = events[i].data.u64;
    if (tag == kFabricTag) continue;  // progress() sees to it
    any = true;
    on_readable(static_cast<uint32_t>(tag), (tag & kProcessBit) != 0);
  }
  return any;
}

// What has been submitted before still counts, as others may wait for it.
void HostLink::on_readable(uint32_t number, bool process_ended) {
  const auto found = clients_.find(number);
  if (found == clients_.end()) return;
  uint8_t byte = 0;
  const ssize_t got = process_ended ? 0 : recv(found->second.socket(), &byte, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got == 1 && byte == session::kDoorbell) return;
  take_submissions(number, found->second);
  const bool leaves = got == 1 && byte == session::kDetach;
  leaves ? link_.add(EntryKind::detach, number) : drop(number);
}

HostClient HostLink::take_out(uint32_t number) {
  HostClient client = std::move(clients_.at(number));
  clients_.erase(number);
  on_gone_();
  return client;
}

void HostLink::drop(uint32_t number) {
  take_out(number);
  link_.add(EntryKind::gone, number);
}

// ---- from the service -----------------------------------------------------------------------------------------------

void HostLink::answer(fabric::Bytes body) {
  wire::SignOfLife sign{};
  if (body.size() != sizeof(sign)) return link_.give_up("it asks what makes no sense");
  memcpy(&sign, body.data(), sizeof(sign));
  link_.add_record(EntryKind::alive, 0, wire::SignOfLife{sign.waited_ns == 0 ? 0 : own_waits_.since_told_ns()});
}

Place HostLink::place_for(const wire::LinkMessage& message, size_t bytes) {
  const auto found = clients_.find(message.client);
  return found == clients_.end() ? Place{} : place_for_put(found->second.memory(), message, bytes);
}

void HostLink::on_message(const wire::LinkMessage& message, fabric::Bytes payload) {
  if (message.kind != wire::LinkKind::get && message.kind != wire::LinkKind::put)
    return link_.give_up("it answers what was not asked");
  const auto found = clients_.find(message.client);
  if (found == clients_.end()) return end_access(message, OFFPATH_ERR_PEER_LOST, link_);
  do_access(found->second.memory(), message, payload, link_);
}

void HostLink::on_entry(const wire::LinkEntry& entry) {
  if (entry.kind == EntryKind::ask) return answer(entry.body);
  if (entry.kind == EntryKind::seen) return take_page(entry.body);
  const auto found = clients_.find(entry.client);
  if (found == clients_.end()) return;  // it has gone meanwhile
  HostClient& client = found->second;
  session::AttachReply reply;
  switch (entry.kind) {
    case EntryKind::words:
      if (!client.take_words(entry.body)) link_.give_up("it writes where it may not");
      return;
    case EntryKind::attached:
      if (entry.body.size() != sizeof(reply) || client.is_answered())
        return link_.give_up("it answers what makes no sense");
      memcpy(&reply, entry.body.data(), sizeof(reply));
      if (reply.status == OFFPATH_OK)
        client.answer(reply);
      else
        clients_.extract(found).mapped().answer(reply);  // it never was one: others may still come
      return;
    case EntryKind::detached:
      take_out(entry.client).say(session::kDetached);
      return;
    case EntryKind::gone:
      take_out(entry.client);
      return;
    default:
      return link_.give_up("it says what is the agent's to say");
  }
}

void HostLink::take_page(fabric::Bytes body) {
  const auto find = [this](uint32_t number) -> std::optional<FarPage::Local> {
    const auto found = clients_.find(number);
    if (found == clients_.end()) return std::nullopt;
    return FarPage::Local{found->second.process(), found->second.waited_ns()};
  };
  if (!page_.take(body, find)) return link_.give_up("it shows what makes no sense");
  if (page_.ask_again()) link_.add(EntryKind::look, 0);
}

void HostLink::on_lost(const char* why) {
  page_.lose();
  base::log_write(base::LogLevel::warn, "the service on the DPU is lost: %s", why);
  auto gone = std::exchange(clients_, {});  // these hear of it at the end
  session::AttachReply refusal{};
  refusal.version = session::kLinkVersion;
  session::fill_refusal(refusal,
                        Status::error(OFFPATH_ERR_NO_SERVICE,
                                      "the link to the service on the DPU is lost: %s (it does not run there any "
                                      "more, or somebody on the way lets nothing through, or changes it). See "
                                      "who is between host and DPU; OFFPATH_SERVICE_LOG=FILE keeps more",
                                      why));
  for (auto& [number, client] : gone) {
    if (!client.is_answered()) client.answer(refusal);
  }
  if (!gone.empty()) on_gone_();
}

}  // namespace offpath::agent
