// SPDX-License-Identifier: BSD-3-Clause
// Channel: the host's end of the way to an executor. Two kinds: a shared segment (same system: the heap is mapped here,
// commands are slots, everybody sleeps on futexes) and a stream (TCP, or the two sides have different processors).
// Functions may be called by any thread. A channel has one thread of its own, which hears the executor's upcalls, its
// last words and its end.
#pragma once

#include "base/fd.hpp"
#include "device/command.hpp"
#include "device/line.hpp"
#include "device/upcall.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace offpath::device {

// A command underway; stays in place until waited for.
struct Pending {
  uint64_t id = 0;
  uint32_t slot = 0;  // segment channel
  Answer answer;
  std::atomic<uint32_t> done{0};  // stream channel; futex
};

struct PendingRead {
  Pending pending;
  void* to = nullptr;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t received = 0;  // stream channel
};

// What a channel's thread tells its owner.
struct Listener {
  void (*serve_upcall)(offpath_upcall_request_t*) = nullptr;
  void (*channel_lost)(uint64_t) = nullptr;
};

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  virtual ~Channel() = default;
  // Ends the channel's thread and with it the executor. Upcalls not answered yet keep the object.
  virtual void close() = 0;
  // In a child that fork has made: lost for it, and nothing of it is touched. Does only what a signal handler may.
  virtual void leave_to_parent() = 0;
  // Bytes into the heap, before any command posted later. `from` is free again at return.
  virtual base::Status write(uint64_t address, const void* from, uint64_t bytes) = 0;
  // Starts reading heap bytes after the launch with the id `after` (0: none) has ended, or fails and is over...
  virtual base::Status post_read(PendingRead& read, uint64_t after) = 0;
  // ... and ends it; that launch has been waited for.
  virtual base::Status finish_read(PendingRead& read) = 0;
  virtual base::Status post(const Command& command, Pending& pending) = 0;
  virtual base::Status wait(Pending& pending) = 0;
  virtual void discard(uint64_t address, uint64_t bytes) = 0;
  virtual void* view(uint64_t address, uint64_t bytes) const = 0;
  // Why the executor ended, where it had time to say it. Empty also while it lives.
  virtual std::optional<Fate> fate() const = 0;
  virtual bool lost() const = 0;
  // For UpcallRequest: answers an upcall; the outputs have been filled in.
  virtual void reply(uint64_t id, int32_t status, std::span<const offpath_span_t> outputs) = 0;
};

// `segment` was passed with hello.
base::Result<std::shared_ptr<Channel>> open_segment_channel(base::Fd socket, base::Fd segment,
                                                            const Description& description, const Listener& listener);
base::Result<std::shared_ptr<Channel>> open_stream_channel(Connection connection, const Description& description,
                                                           const Listener& listener);

}  // namespace offpath::device
