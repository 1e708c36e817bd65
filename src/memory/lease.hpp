// SPDX-License-Identifier: BSD-3-Clause
// Lease: memory that another thread may read until its owner ends that. The owner does not wait for readers, so a
// reader asks is_over() before it takes for data what it has read.
#pragma once

#include "memory/port.hpp"

#include <atomic>

namespace offpath::memory {

class Lease : public Port {
 public:
  explicit Lease(std::shared_ptr<Port> memory) : memory_(std::move(memory)) {}
  // Before its owner may write there again.
  void end() { over_.store(true, std::memory_order_release); }

  Outcome read(void* to, uint64_t address, size_t bytes, Ticket ticket) const override {
    return memory_->read(to, address, bytes, ticket);
  }
  Outcome write(uint64_t address, const void* from, size_t bytes, Ticket ticket) const override {
    return memory_->write(address, from, bytes, ticket);
  }
  Outcome gather(void* to, std::span<const Range> ranges, Ticket ticket) const override {
    return memory_->gather(to, ranges, ticket);
  }
  Outcome scatter(std::span<const Range> ranges, const void* from, Ticket ticket) const override {
    return memory_->scatter(ranges, from, ticket);
  }
  bool prompt() const override { return memory_->prompt(); }
  uint8_t* view(uint64_t address, size_t bytes) const override { return memory_->view(address, bytes); }
  size_t alike(uint64_t address, size_t bytes) const override { return memory_->alike(address, bytes); }
  bool is_over() const override {
    std::atomic_thread_fence(std::memory_order_acquire);  // what was read before, was
    return over_.load(std::memory_order_relaxed);
  }

 private:
  const std::shared_ptr<Port> memory_;
  std::atomic<bool> over_{false};
};

}  // namespace offpath::memory
