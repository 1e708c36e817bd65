// SPDX-License-Identifier: BSD-3-Clause
// Device: the host's end of a device, that is of one executor process that runs target regions, reached over a channel.
// Addresses are the executor's. All functions may be called by any thread at once (but one Queue by one at a time);
// errno is not kept. After the executor has died every call fails with OFFPATH_ERR_SERVICE_LOST and why.
#pragma once

#include "base/fd.hpp"
#include "device/arena.hpp"
#include "device/channel.hpp"
#include "device/command.hpp"
#include "device/upcall.h"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace offpath::device {

// What is issued into one queue happens in order; queues are independent of each other. Must be waited for (or its
// device be closed) before it is destroyed.
class Queue {
 public:
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

 private:
  friend class Device;
  Pending launch_;
  bool launched_ = false;
  uint64_t entry_ = 0;      // of the launch
  uint64_t arguments_ = 0;  // where they lie, if they are many
  std::deque<PendingRead> reads_;
};

class Device {
 public:
  struct Options {
    std::string name;        // for messages
    int number = 0;          // of device(number)
    int timeout_ms = 10000;  // for the executor's first word
    // Upcalls go here (both may be null): see upcall.h.
    void (*serve_upcall)(offpath_upcall_request_t*) = nullptr;
    void (*channel_lost)(uint64_t) = nullptr;
  };

  // `socket` leads to an executor that is about to say hello (see connect.hpp). Blocks for at most timeout_ms.
  static base::Result<std::unique_ptr<Device>> open(Connection connection, const Options& options);
  // The executor ends with its channel.
  ~Device();

  const Description& description() const { return description_; }
  const Options& options() const { return options_; }
  // Where it is known later than when the device was opened: before anything else is asked of it.
  void set_number(int number) { options_.number = number; }

  // Loads an ELF image and returns the addresses of the entries named, in order. `image` must stay in place: messages
  // about crashes look up lines in it. Blocks.
  base::Result<std::vector<uint64_t>> load(std::span<const uint8_t> image, std::span<const char* const> names);

  // Addresses of the heap, 64-byte aligned. No round trip. Errors: OFFPATH_ERR_NO_MEMORY.
  base::Result<uint64_t> allocate(uint64_t bytes);
  // Unknown addresses are an error. Nothing underway may use the block.
  base::Status release(uint64_t address);

  // Bytes to and from any address of the executor, heap or not. `from` may be reused when write returns; `to` is valid
  // after wait(queue).
  base::Status write(uint64_t address, const void* from, uint64_t bytes, Queue& queue);
  base::Status read(void* to, uint64_t address, uint64_t bytes, Queue& queue);
  base::Status copy(uint64_t to, uint64_t from, uint64_t bytes, Queue& queue);
  // Starts an entry; arguments are pointer-sized integers.
  base::Status launch(uint64_t entry, std::span<const uint64_t> arguments, Queue& queue);
  // Blocks until all of the queue has happened. The first error of it, or ok.
  base::Status wait(Queue& queue);

  // Host address of a piece of the heap; null where it is none or the channel is a stream.
  void* view(uint64_t address, uint64_t bytes) const;
  // In a child that fork has made: from then on all fails. Does only what a signal handler may.
  void leave_to_parent();
  // Ok while the executor lives.
  base::Status state() const;

 private:
  struct Image {
    std::span<const uint8_t> bytes;
    std::unordered_map<uint64_t, std::string> entries;  // names by address
  };
  Device(Options options, const Description& description, std::shared_ptr<Channel> channel);
  bool in_heap(uint64_t address, uint64_t bytes) const;
  base::Status settle(Queue& queue);  // waits for its launch
  base::Status run(const Command& command);
  base::Status lost(uint64_t entry = 0) const;  // `entry`: of the region that waits, if any
  std::string region_of(uint64_t entry) const;
  std::string place_of(uint64_t entry) const;

  Options options_;
  Description description_;
  mutable std::mutex mutex_;
  Arena arena_;
  std::vector<Image> images_;
  std::shared_ptr<Channel> channel_;
  std::atomic<bool> parents_{false};  // of the process that this one was forked from
};

}  // namespace offpath::device
