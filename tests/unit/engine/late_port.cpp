// SPDX-License-Identifier: BSD-3-Clause
#include "late_port.hpp"

#include "agent_port.hpp"

#include <cstdlib>
#include <cstring>

namespace offpath::testing {

bool ports_are_late() {
  const char* kind = getenv("OFFPATH_TEST_PORT");
  return kind != nullptr && (strcmp(kind, "late") == 0 || strcmp(kind, "agent") == 0);
}

memory::Outcome LatePort::read(void* to, uint64_t address, size_t bytes, memory::Ticket ticket) const {
  return later(ticket, [=, this] { return port_->read(to, address, bytes); });
}

memory::Outcome LatePort::write(uint64_t address, const void* from, size_t bytes, memory::Ticket ticket) const {
  return later(ticket, [=, this] { return port_->write(address, from, bytes); });
}

memory::Outcome LatePort::gather(void* to, std::span<const memory::Range> ranges, memory::Ticket ticket) const {
  return later(ticket, [=, this, kept = std::vector(ranges.begin(), ranges.end())] { return port_->gather(to, kept); });
}

memory::Outcome LatePort::scatter(std::span<const memory::Range> ranges, const void* from,
                                  memory::Ticket ticket) const {
  return later(ticket,
               [=, this, kept = std::vector(ranges.begin(), ranges.end())] { return port_->scatter(kept, from); });
}

bool LatePort::step() {
  const bool any = !waiting_.empty();
  for (size_t count = random_() % 4; count > 0 && !waiting_.empty(); --count) {
    std::swap(waiting_[random_() % waiting_.size()], waiting_.back());
    const auto next = std::move(waiting_.back());
    waiting_.pop_back();
    next.ticket.sink->put(next.ticket.number, next.access().status());
  }
  return any;
}

memory::Outcome LatePort::later(memory::Ticket ticket, std::function<memory::Outcome()> access) const {
  waiting_.push_back({ticket, std::move(access)});
  return memory::Outcome::later();
}

std::shared_ptr<DrivenPort> make_driven_port(std::shared_ptr<memory::Port> port, uint64_t seed) {
  if (strcmp(getenv("OFFPATH_TEST_PORT"), "agent") == 0) return std::make_shared<AgentPort>(port, seed);
  return std::make_shared<LatePort>(std::move(port), seed);
}

}  // namespace offpath::testing
