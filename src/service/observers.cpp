// SPDX-License-Identifier: BSD-3-Clause
#include "service/observers.hpp"

#include "base/clock.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

namespace offpath::service {

using base::Fd;
using base::Memfd;
using base::Result;
using base::Status;

Observers::Observers(uint32_t workers, bool shares_cores, Publish publish)
    : workers_(workers),
      shares_cores_(shares_cores),
      publish_(std::move(publish)),
      started_ns_(base::clock_ns()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

Result<int> Observers::admit() {
  if (sockets_.size() >= kMost) {
    return Status::error(OFFPATH_ERR_NO_SERVICE, "%zu processes watch this service already. End one of them", kMost);
  }
  if (memory_.data() != nullptr) return memory_.fd();
  const size_t bytes = session::kObservationHeaderBytes + size_t{workers_} * session::kPageBytes;
  auto memory = Memfd::create_read_only("offpath-observation", bytes);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(memory.value());
  auto& header = *reinterpret_cast<session::ObservationHeader*>(memory_.data());
  header.magic = session::kObservationMagic;
  header.version = session::kObservationVersion;
  header.worker_count = workers_;
  header.bytes = bytes;
  header.page_bytes = session::kPageBytes;
  header.clients_per_worker = session::kObservedClients;
  header.tick_ms = kTickMs;
  header.process = getpid();
  header.shares_cores = shares_cores_ ? 1 : 0;
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
  auto* pages = reinterpret_cast<session::WorkerPage*>(memory_.data() + session::kObservationHeaderBytes);
  for (uint32_t worker = 0; worker < workers_; ++worker) publish_(worker, pages[worker]);
}

}  // namespace offpath::service
