// SPDX-License-Identifier: BSD-3-Clause
#include "session/observers.hpp"

#include "base/clock.hpp"
#include "session/reception.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

namespace offpath::session {

using base::Fd;
using base::Memfd;
using base::Result;
using base::Status;

Observers::Observers(Options options, Publish publish)
    : options_(options),
      publish_(std::move(publish)),
      started_ns_(base::clock_ns()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void Observers::greet(Fd socket, const Result<PeerCredentials>& credentials, const AttachRequest& request,
                      AttachReply reply) {
  reply.version = kLinkVersion;
  reply.process = getpid();
  Status status = check_peer(credentials, request);
  int published = -1;
  if (status.ok()) {
    const auto admitted = admit();
    status = admitted.status();
    if (status.ok()) published = admitted.value();
  }
  if (!status.ok()) fill_refusal(reply, status);
  const Status sent = send_message(socket.get(), &reply, sizeof(reply), published);
  if (sent.ok() && published >= 0) add(std::move(socket));
}

Result<int> Observers::admit() {
  if (sockets_.size() >= kMost) {
    return Status::error(OFFPATH_ERR_NO_SERVICE, "%zu processes watch this service already. End one of them", kMost);
  }
  if (memory_.data() != nullptr) return memory_.fd();
  const size_t bytes = kObservationHeaderBytes + size_t{options_.pages} * kPageBytes;
  auto memory = Memfd::create_read_only("offpath-observation", bytes);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(memory.value());
  auto& header = *reinterpret_cast<ObservationHeader*>(memory_.data());
  header.magic = kObservationMagic;
  header.version = kObservationVersion;
  header.worker_count = options_.pages;
  header.bytes = bytes;
  header.page_bytes = kPageBytes;
  header.clients_per_worker = kObservedClients;
  header.tick_ms = options_.tick_ms;
  header.process = getpid();
  header.shares_cores = options_.shares_cores ? 1 : 0;
  header.started_ns = started_ns_;
  return memory_.fd();
}

void Observers::add(Fd socket) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = socket.get();
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event);
  sockets_.push_back(std::move(socket));
  tick();
}

void Observers::look() {
  epoll_event events[kMost];
  const int count = epoll_wait(epoll_.get(), events, kMost, 0);
  for (int i = 0; i < count; ++i) {
    std::erase_if(sockets_, [&](const Fd& socket) { return socket.get() == events[i].data.fd; });
  }
}

void Observers::tick() {
  ticked_ns_ = base::clock_ns();
  auto* pages = reinterpret_cast<WorkerPage*>(memory_.data() + kObservationHeaderBytes);
  for (uint32_t number = 0; number < options_.pages; ++number) publish_(number, pages[number]);
}

int Observers::tick_if_due() {
  if (!any()) return -1;
  const auto since_ms = static_cast<uint32_t>((base::clock_ns() - ticked_ns_) / 1000000);
  if (since_ms < options_.tick_ms) return static_cast<int>(options_.tick_ms - since_ms);
  tick();
  return static_cast<int>(options_.tick_ms);
}

}  // namespace offpath::session
