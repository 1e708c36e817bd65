// SPDX-License-Identifier: BSD-3-Clause
// A process that watches a service, or the agent of one, as python/offpath/telemetry/observation.py does.
#pragma once

#include "job.hpp"

#include "session/link.hpp"
#include "session/observation.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace offpath::testing {

inline session::AttachRequest observe_request() {
  session::AttachRequest request{};
  request.version = session::kLinkVersion;
  request.kind = static_cast<uint32_t>(session::RequestKind::observe);
  return request;
}

struct Watcher {
  explicit Watcher(const Process& p, const session::AttachRequest& request = observe_request()) {
    socket = std::move(session::connect_to(session::socket_path(p.folder, p.shared.token)).value());
    REQUIRE(session::send_message(socket.get(), &request, sizeof(request)).ok());
    auto passed = session::receive_message(socket.get(), &reply, sizeof(reply), kPatienceSeconds * 1000);
    REQUIRE(passed.ok());
    if (!passed->valid()) return;
    bytes = static_cast<size_t>(lseek(passed->get(), 0, SEEK_END));
    data = static_cast<const uint8_t*>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, passed->get(), 0));
    REQUIRE(data != MAP_FAILED);
    memory = std::move(passed.value());
  }
  ~Watcher() {
    if (data != nullptr) munmap(const_cast<uint8_t*>(data), bytes);
  }
  const session::ObservationHeader& header() const {
    return *reinterpret_cast<const session::ObservationHeader*>(data);
  }
  const session::WorkerPage& page(uint32_t worker = 0) const {
    return *reinterpret_cast<const session::WorkerPage*>(data + session::kObservationHeaderBytes +
                                                         worker * session::kPageBytes);
  }
  uint64_t generation() const { return page().worker.generation.load(); }
  // Until the page has been written twice more: what was there before is in it.
  void refresh() const {
    const uint64_t seen = generation();
    REQUIRE(eventually([&] { return generation() >= seen + 4; }));
  }
  base::Fd socket, memory;
  session::AttachReply reply{};
  const uint8_t* data = nullptr;
  size_t bytes = 0;
};

}  // namespace offpath::testing
