// SPDX-License-Identifier: BSD-3-Clause
#include "agent/agent.hpp"

#include "agent/host_memory.hpp"
#include "agent/reach.hpp"
#include "base/clock.hpp"
#include "base/epoll.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/quiet_thread.hpp"
#include "session/dpus.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace offpath::agent {

using base::Fd;
using base::LogLevel;
using base::Status;

namespace {
constexpr int kLingerMs = 50;  // for clients that attach while the last one leaves
constexpr int kFlushTimeoutMs = 1000;
constexpr uint64_t kLobbyTag = 0, kLinkTag = 1, kObserversTag = 2, kAlarmTag = 3;
constexpr uint32_t kTickMs = 200;             // of observers: the shortest interval of offpath top
constexpr uint32_t kRoundsBetweenLooks = 64;  // while there is much to do anyway
}  // namespace

Agent::Agent(AgentOptions options)
    : options_(std::move(options)),
      lobby_({session::kAttachTimeoutNs}),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      alarm_(eventfd(0, EFD_CLOEXEC)) {}

Status Agent::start() {
  const uint64_t end_ns = base::clock_ns() + static_cast<uint64_t>(options_.start_timeout_ms) * 1000000;
  auto fabric = fabric::make("tcp", options_.key);
  if (!fabric.ok()) return fabric.status();
  fabric_ = std::move(fabric.value());
  const std::vector<std::string> dpus = session::unquoted_parts(options_.dpus, ',');
  if (dpus.empty()) return Status::error(OFFPATH_ERR_ARGUMENT, "OFFPATH_DPU names no DPU. Name one, or leave it out");
  std::vector<std::vector<std::unique_ptr<HostLink>>> by_dpu;
  uint8_t token_there[OFFPATH_TOKEN_BYTES];
  std::copy(options_.key.begin(), options_.key.end(), std::begin(token_there));
  for (const std::string& dpu : dpus) {
    const uint64_t now_ns = base::clock_ns();
    const auto reached = reach(dpu, token_there, now_ns < end_ns ? static_cast<int>((end_ns - now_ns) / 1000000) : 0);
    if (!reached.ok()) return reached.status();
    if (reached->version != OFFPATH_VERSION) {
      return Status::error(OFFPATH_ERR_NO_SERVICE,
                           "Offpath %.20s is installed on the DPU '%.60s', and %s here. Install the same release",
                           reached->version.c_str(), dpu.c_str(), OFFPATH_VERSION);
    }
    std::vector<std::unique_ptr<HostLink>> links;
    for (const auto& address : reached->addresses) {
      auto link = connect(address);
      if (!link.ok()) return link.status();
      links.push_back(std::move(link.value()));
    }
    by_dpu.push_back(std::move(links));
    base::log_write(LogLevel::info, "agent of the DPU '%.80s' (%.20s, %u cores, Offpath %.20s)", dpu.c_str(),
                    reached->machine.c_str(), reached->cores, reached->version.c_str());
  }
  dpus_count_ = by_dpu.size();
  for (bool any = true; std::exchange(any, false);) {  // one link of each DPU, then the next one of each
    for (auto& links : by_dpu) {
      if (links.empty()) continue;
      links_.push_back(std::move(links.front()));
      links.erase(links.begin());
      any = true;
    }
  }
  observers_.emplace(session::Observers::Options{.pages = static_cast<uint32_t>(links_.size()), .tick_ms = kTickMs},
                     [this](uint32_t link, session::WorkerPage& page) { links_[link]->publish(link, page); });
  base::watch(epoll_.get(), observers_->event_fd(), kObserversTag);
  return nudge_.start(options_.settle);
}

base::Result<std::unique_ptr<HostLink>> Agent::connect(const std::vector<uint8_t>& address) {
  auto endpoint = fabric_.context->make_endpoint();
  if (!endpoint.ok()) return endpoint.status();
  auto link = std::make_unique<HostLink>(std::move(endpoint.value()), [this] {
    if (clients_count() == 0) remove_socket();
  });
  if (const Status status = link->connect(address); !status.ok()) return status;
  base::watch(epoll_.get(), link->event_fd(), kLinkTag);
  return link;
}

size_t Agent::clients_count() const {
  size_t count = 0;
  for (const auto& link : links_) count += link->clients_count();
  return count;
}

// Only once: later another agent may have a socket at that path.
void Agent::remove_socket() {
  if (!std::exchange(socket_removed_, true)) options_.socket.remove();
}

void Agent::serve(int listening) {
  lobby_.open(listening);
  base::watch(epoll_.get(), lobby_.event_fd(), kLobbyTag);
  base::watch(epoll_.get(), alarm_.get(), kAlarmTag);
  bool had_client = false;
  uint32_t rounds = 0;
  uint64_t idle_since_ns = base::clock_ns();
  while (true) {
    bool busy = false;
    if (is_replaced_.exchange(false)) leave();
    const int tick_ms = observers_->tick_if_due();
    for (const auto& link : links_) busy |= link->round();
    const bool none = clients_count() == 0 && !lobby_.any();
    const uint64_t now_ns = base::clock_ns();
    if (!none) idle_since_ns = now_ns;
    const int patience_ms = had_client || leaves_ ? kLingerMs : options_.first_client_timeout_ms;
    const auto idle_ms = static_cast<int>((now_ns - idle_since_ns) / 1000000);
    if (none && idle_ms >= patience_ms) break;
    const bool look = !busy || ++rounds % kRoundsBetweenLooks == 0;
    const bool somebody_comes = look && sleep(busy ? 0 : none ? patience_ms - idle_ms : tick_ms);
    if (somebody_comes || lobby_.any())
      session::receive(lobby_, "agent", [&](session::Caller caller) { had_client |= greet(std::move(caller)); });
  }
  if (replacing_.joinable()) replacing_.join();
  if (is_replaced_) leave();
  base::log_write(LogLevel::info, "the agent ends: no clients");
  remove_socket();
  show_the_end();
  for (const auto& link : links_) link->flush(kFlushTimeoutMs);
}

// Shows observers the counts as they are after the last client has left.
void Agent::show_the_end() {
  if (!observers_->any()) return;
  observers_->tick();
  const uint64_t end_ns = base::clock_ns() + uint64_t{kFlushTimeoutMs} * 1000000;
  const auto owes = [](const auto& link) { return link->owes_page(); };
  while (std::any_of(links_.begin(), links_.end(), owes) && base::clock_ns() < end_ns) {
    bool busy = false;
    for (const auto& link : links_) busy |= link->round();
    if (!busy) sleep(static_cast<int>(kTickMs));
  }
}

bool Agent::sleep(int timeout_ms) {
  bool may_sleep = true;
  for (const auto& link : links_) may_sleep &= link->prepare_sleep();
  epoll_event events[8];
  const bool sleeps = may_sleep && timeout_ms != 0;
  nudge_.note_sleep();
  if (sleeps && may_stand_still()) nudge_.set();
  const int count = epoll_wait(epoll_.get(), events, 8, sleeps ? lobby_.wait_ms(timeout_ms) : 0);
  nudge_.cancel();
  for (const auto& link : links_) link->end_sleep();
  const auto is_said = [&](uint64_t tag) {
    return std::any_of(events, events + std::max(count, 0), [&](const auto& e) { return e.data.u64 == tag; });
  };
  if (is_said(kObserversTag)) observers_->look();
  if (is_said(kAlarmTag)) {
    uint64_t value;
    [[maybe_unused]] const ssize_t got = read(alarm_.get(), &value, sizeof(value));
  }
  return is_said(kLobbyTag);
}

// Where a client computes with operations under way the kernel may not run a woken agent at once (base/nudge.hpp).
bool Agent::may_stand_still() const {
  return std::any_of(links_.begin(), links_.end(), [](const auto& link) { return link->any_computes(); });
}

void Agent::be_replaced(session::Caller caller) {
  if (!options_.replacement || leaves_ || is_replaced_ || is_replacing_.exchange(true))
    return session::refuse(caller.socket, Status::error(OFFPATH_ERR_STATE, "%s", session::kIsReplaced));
  if (replacing_.joinable()) replacing_.join();
  const auto clients = static_cast<uint32_t>(clients_count());
  replacing_ = base::quiet_thread([this, caller = std::move(caller), clients] {
    is_replaced_ = session::replace(*options_.replacement, caller.socket, caller.credentials, caller.request, clients,
                                    options_.socket.path(), options_.token);
    is_replacing_ = false;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(alarm_.get(), &one, sizeof(one));
  });
}

void Agent::leave() {
  leaves_ = true;
  socket_removed_ = true;  // that at the path is the other one's
  for (const auto& link : links_) link->leave();
}

HostLink* Agent::next_link() {
  for (size_t tries = 0; tries < links_.size(); ++tries) {
    HostLink* const link = links_[next_++ % links_.size()].get();
    if (!link->lost()) return link;
  }
  return nullptr;
}

bool Agent::greet(session::Caller caller) {
  if (caller.wants(session::RequestKind::observe)) {
    session::AttachReply reply{};
    reply.flags = session::kServiceIsFar;
    reply.workers = static_cast<uint32_t>(links_.size());
    reply.clients = static_cast<uint32_t>(clients_count());
    observers_->greet(std::move(caller.socket), caller.credentials, caller.request, reply);
    return false;
  }
  if (caller.wants(session::RequestKind::replace)) {
    be_replaced(std::move(caller));
    return false;
  }
  if (const Status status = attach(caller); !status.ok()) session::refuse(caller.socket, status);
  return true;
}

Status Agent::attach(session::Caller& caller) {
  HostLink* const link = next_link();
  if (link == nullptr) return Status::error(OFFPATH_ERR_NO_SERVICE, "the service on the DPU is lost");
  auto view = session::open_segment(caller, options_.token);
  if (!view.ok()) return view.status();
  const pid_t process = caller.credentials->pid;
  Fd alive = base::open_process(process);  // memory_on_this_machine sees whether it is the right process
  const auto aliases = std::make_shared<memory::Aliases>();
  auto memory = memory_on_this_machine(view.value(), process, aliases);
  if (!memory.ok()) return memory.status();
  if (leaves_) view->header().leaves.store(1, std::memory_order_release);  // it was on its way to the socket before
  // Clients that are dealt out to several machines need the network between these.
  const uint32_t flags = dpus_count_ > 1 ? caller.request.flags & ~session::kNodeOnly : caller.request.flags;
  link->attach(HostClient(std::move(caller.socket), std::move(alive), process, std::move(view.value()), aliases,
                          std::move(memory.value())),
               flags);
  return {};
}

}  // namespace offpath::agent
