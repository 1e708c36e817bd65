// SPDX-License-Identifier: BSD-3-Clause
// What is copied, counted where it happens: by ports, and by the kernel at sockets (counted.cpp stands in front of its
// functions).
#pragma once

#include "memory/port.hpp"

#include <atomic>
#include <cstdint>

namespace worker_bench {

// Of all threads, so far.
std::uint64_t copied_bytes();
void note_copied(std::uint64_t bytes);

// Passes all on to another port.
class CountedPort : public offpath::memory::Port {
 public:
  explicit CountedPort(std::unique_ptr<Port> port) : port_(std::move(port)) {}
  offpath::memory::Outcome read(void* to, uint64_t address, size_t bytes,
                                offpath::memory::Ticket ticket) const override {
    note_copied(bytes);
    return port_->read(to, address, bytes, ticket);
  }
  offpath::memory::Outcome write(uint64_t address, const void* from, size_t bytes,
                                 offpath::memory::Ticket ticket) const override {
    note_copied(bytes);
    return port_->write(address, from, bytes, ticket);
  }
  uint8_t* view(uint64_t address, size_t bytes) const override { return port_->view(address, bytes); }
  size_t alike(uint64_t address, size_t bytes) const override { return port_->alike(address, bytes); }

 private:
  std::unique_ptr<Port> port_;
};

}  // namespace worker_bench
