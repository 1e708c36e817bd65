// SPDX-License-Identifier: BSD-3-Clause
// Endpoint: the executor's end of a channel. Functions may be called by any thread at once.
#pragma once

#include "base/fd.hpp"
#include "device/command.hpp"
#include "device/line.hpp"
#include "device/upcall_frame.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

struct iovec;

namespace offpath::executor {

struct Taken {
  device::Command command;
  uint32_t slot = 0;  // segment channel
};

// Who knows where the outputs of upcalls go.
class ReplyTargets {
 public:
  virtual ~ReplyTargets() = default;
  // Outputs of an upcall that is not answered yet; empty when there is no such.
  virtual std::span<const offpath_span_t> outputs_of(uint64_t upcall) = 0;
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // Sleeps until there is a command that is not the endpoint's own business. False: the channel has ended.
  virtual bool take(Taken& taken) = 0;
  virtual void answer(const Taken& taken, const device::Answer& answer) = 0;
  // `inputs` are sent along where memory is not shared.
  virtual base::Status send_upcall(uint64_t id, const device::UpcallFrame& frame, std::span<const iovec> inputs) = 0;
  // From a signal handler: waits a while for another thread's frame, then gives up.
  virtual void send_fate(const device::Fate& fate) = 0;
  // Room that the host can see, for spans that it cannot; null: full, or memory is not shared.
  virtual void* stage(uint64_t bytes) = 0;
  virtual void unstage(void* room) = 0;

  virtual bool shares_memory() const = 0;
  uint64_t heap_address() const { return heap_address_; }
  uint64_t heap_bytes() const { return heap_bytes_; }
  bool in_heap(uint64_t address, uint64_t bytes) const {
    return address >= heap_address_ && bytes <= heap_bytes_ && address - heap_address_ <= heap_bytes_ - bytes;
  }

 protected:
  uint64_t heap_address_ = 0;
  uint64_t heap_bytes_ = 0;
};

// Both reserve the heap and say hello; the socket stays the caller's. `spin`: how long an idle thread looks for
// commands before it sleeps.
base::Result<std::unique_ptr<Endpoint>> open_segment_endpoint(int socket, device::Description description,
                                                              std::chrono::microseconds spin);
base::Result<std::unique_ptr<Endpoint>> open_stream_endpoint(const device::Line& line, device::Description description,
                                                             ReplyTargets& targets);

}  // namespace offpath::executor
