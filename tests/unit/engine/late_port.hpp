// SPDX-License-Identifier: BSD-3-Clause
// Ports that do accesses later, where OFFPATH_TEST_PORT says so: "late", in a later round, in any order; "agent", at the
// other end of a link (agent_port.hpp).
#pragma once

#include "memory/port.hpp"

#include <functional>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace offpath::testing {

bool ports_are_late();

class DrivenPort : public memory::Port {
 public:
  // Does some of what is to be done. False: there was nothing.
  virtual bool step() = 0;
};

class LatePort : public DrivenPort {
 public:
  LatePort(std::shared_ptr<memory::Port> port, uint64_t seed) : port_(std::move(port)), random_(seed) {}

  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket ticket) const override;
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket ticket) const override;
  memory::Outcome gather(void* to, std::span<const memory::Range> ranges, memory::Ticket ticket) const override;
  memory::Outcome scatter(std::span<const memory::Range> ranges, const void* from,
                          memory::Ticket ticket) const override;
  bool prompt() const override { return false; }
  // Computations need it.
  uint8_t* view(uint64_t address, size_t bytes) const override { return views ? port_->view(address, bytes) : nullptr; }
  bool step() override;
  bool views = false;

 private:
  struct Waiting {
    memory::Ticket ticket;
    std::function<memory::Outcome()> access;
  };
  memory::Outcome later(memory::Ticket ticket, std::function<memory::Outcome()> access) const;

  const std::shared_ptr<memory::Port> port_;
  mutable std::vector<Waiting> waiting_;
  std::mt19937_64 random_;
};

// Of the kind that OFFPATH_TEST_PORT names.
std::shared_ptr<DrivenPort> make_driven_port(std::shared_ptr<memory::Port> port, uint64_t seed);

}  // namespace offpath::testing
