// SPDX-License-Identifier: BSD-3-Clause
// Outbox: entries for an agent that a worker has made, until the door of that agent takes them. One thread, the worker's. It
// may outlive the door.
#pragma once

#include "wire/link.hpp"

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

  void put(wire::EntryKind kind, uint32_t client, std::vector<uint8_t> body) {
    if (!closed_) entries_.push_back({kind, client, std::move(body)});
  }
  bool empty() const { return entries_.empty(); }
  std::vector<Entry> take() { return std::exchange(entries_, {}); }
  // Nobody takes any more.
  void close() {
    closed_ = true;
    entries_.clear();
  }

 private:
  std::vector<Entry> entries_;
  bool closed_ = false;
};

}  // namespace offpath::service
