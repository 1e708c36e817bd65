// SPDX-License-Identifier: BSD-3-Clause
// Outbox: entries for an agent that workers have made, until its door's thread takes them; and that thread's alarm. It may
// outlive the door.
#pragma once

#include "base/fd.hpp"
#include "wire/link.hpp"

#include <sys/eventfd.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace offpath::service {

class Outbox {
 public:
  struct Entry {
    wire::EntryKind kind;
    uint32_t client;
    std::vector<uint8_t> body;
  };

  // Any thread.
  void put(wire::EntryKind kind, uint32_t client, std::vector<uint8_t> body) {
    {
      std::lock_guard lock(mutex_);
      entries_.push_back({kind, client, std::move(body)});
    }
    ring();
  }
  void ring() {
    if (rung_.exchange(true)) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(alarm_.get(), &one, sizeof(one));
  }

  // The door's thread.
  std::vector<Entry> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(entries_, {});
  }
  // Readable from a ring() on until heard(), after which everything is to be looked at again.
  int event_fd() const { return alarm_.get(); }
  void heard() {
    uint64_t value = 0;
    [[maybe_unused]] const ssize_t got = read(alarm_.get(), &value, sizeof(value));
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::atomic<bool> rung_{false};
  base::Fd alarm_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

}  // namespace offpath::service
