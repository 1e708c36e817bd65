// SPDX-License-Identifier: BSD-3-Clause
// Ports that do accesses later, where OFFPATH_TEST_PORT says so: "late", in a later round, in any order; "agent", at the
// other end of a link (agent_port.hpp).
#pragma once

#include "memory/port.hpp"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

namespace offpath::testing {

inline bool ports_are_late() {
  const char* kind = getenv("OFFPATH_TEST_PORT");
  return kind != nullptr && (strcmp(kind, "late") == 0 || strcmp(kind, "agent") == 0);
}

class DrivenPort : public memory::Port {
 public:
  // Does some of what is to be done. False: there was nothing.
  virtual bool step() = 0;
};

class LatePort : public DrivenPort {
 public:
  LatePort(std::shared_ptr<memory::Port> port, uint64_t seed) : port_(std::move(port)), random_(seed) {}

  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket ticket) const override {
    return later(ticket, [=, this] { return port_->read(to, address, bytes); });
  }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket ticket) const override {
    return later(ticket, [=, this] { return port_->write(address, from, bytes); });
  }
  memory::Outcome gather(void* to, std::span<const memory::Range> ranges, memory::Ticket ticket) const override {
    return later(ticket,
                 [=, this, kept = std::vector(ranges.begin(), ranges.end())] { return port_->gather(to, kept); });
  }
  memory::Outcome scatter(std::span<const memory::Range> ranges, const void* from,
                          memory::Ticket ticket) const override {
    return later(ticket,
                 [=, this, kept = std::vector(ranges.begin(), ranges.end())] { return port_->scatter(kept, from); });
  }
  bool prompt() const override { return false; }
  // Computations need it.
  uint8_t* view(uint64_t address, size_t bytes) const override { return views ? port_->view(address, bytes) : nullptr; }

  bool step() override {
    const bool any = !waiting_.empty();
    for (size_t count = random_() % 4; count > 0 && !waiting_.empty(); --count) {
      std::swap(waiting_[random_() % waiting_.size()], waiting_.back());
      const auto next = std::move(waiting_.back());
      waiting_.pop_back();
      next.ticket.sink->put(next.ticket.number, next.access().status());
    }
    return any;
  }
  bool views = false;

 private:
  struct Waiting {
    memory::Ticket ticket;
    std::function<memory::Outcome()> access;
  };
  memory::Outcome later(memory::Ticket ticket, std::function<memory::Outcome()> access) const {
    waiting_.push_back({ticket, std::move(access)});
    return memory::Outcome::later();
  }
  const std::shared_ptr<memory::Port> port_;
  mutable std::vector<Waiting> waiting_;
  std::mt19937_64 random_;
};

}  // namespace offpath::testing
