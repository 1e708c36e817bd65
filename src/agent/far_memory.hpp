// SPDX-License-Identifier: BSD-3-Clause
// FarMemory: the memory of an agent's clients, as ports: each access is a get or put over the link and ends later. Several are
// under way at a time, up to a limit of bytes, so that the link is filled and a queue stays here.
//
// Threads: ports are used by any; what the link hears comes on its own. When the link is lost every access fails; but the
// buffers of those that the fabric still has are the caller's again only when that says so.
#pragma once

#include "agent/link.hpp"
#include "memory/port.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>

namespace offpath::agent {

class FarMemory : public std::enable_shared_from_this<FarMemory> {
 public:
  static constexpr uint64_t kBytesInFlight = 8 << 20;

  // `wake`: has move() called soon; by any thread that asks for an access.
  explicit FarMemory(std::function<void()> wake, uint64_t bytes_in_flight = kBytesInFlight)
      : wake_(std::move(wake)), limit_(bytes_in_flight) {}

  std::shared_ptr<memory::Port> port_of(uint32_t client);

  // The link's thread. Sends what there is room for; whether it was anything.
  bool move(Link& link);
  bool waits();  // something might leave then
  Place place_for(const wire::LinkMessage& message, size_t bytes);
  void on_message(const wire::LinkMessage& message, fabric::Bytes payload);
  void on_sent(uint64_t number);
  void lose();  // nothing will be answered any more
  bool idle();

 private:
  class Port;
  struct Access {
    wire::LinkMessage message;
    uint8_t* to = nullptr;          // get
    const uint8_t* from = nullptr;  // put
    std::vector<memory::Range> ranges;
    memory::Ticket ticket;
    bool leaves = false;  // the fabric has the buffer of a put ...
    bool comes = false;   // ... or of a get: until then nothing else that is said of it counts
    bool answered = false;
    base::Status status;
  };
  memory::Outcome begin(Access access);
  void end_if_over(uint64_t number);

  const std::function<void()> wake_;
  const uint64_t limit_;
  std::mutex mutex_;
  std::deque<Access> waiting_;
  bool lost_ = false;
  std::unordered_map<uint64_t, Access> open_;  // the link's thread
  uint64_t open_bytes_ = 0;
  uint64_t next_number_ = 1;
};

}  // namespace offpath::agent
