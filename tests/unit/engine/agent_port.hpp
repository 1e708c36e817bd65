// SPDX-License-Identifier: BSD-3-Clause
// Memory behind a link, as a service sees that of an agent's client: both ends in this process.
#pragma once

#include "agent/far_memory.hpp"
#include "agent/host_memory.hpp"
#include "fabric/loopback/loopback.hpp"
#include "late_port.hpp"

#include <gtest/gtest.h>

namespace offpath::testing {

class AgentPort : public DrivenPort {
 public:
  AgentPort(const std::shared_ptr<memory::Port>& port, uint64_t seed)
      : network_(seed),
        service_{std::make_shared<agent::FarMemory>([] {}, kFewBytes)},
        agent_{port},
        service_link_(network_.make_endpoint(), service_),
        agent_link_(network_.make_endpoint(), agent_),
        port_(service_.memory->port_of(1)) {
    agent_.link = &agent_link_;
    EXPECT_TRUE(service_link_.connect(agent_link_.fabric().address()).ok());
    EXPECT_TRUE(agent_link_.connect(service_link_.fabric().address()).ok());
  }

  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket ticket) const override {
    return port_->read(to, address, bytes, ticket);
  }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket ticket) const override {
    return port_->write(address, from, bytes, ticket);
  }
  memory::Outcome gather(void* to, std::span<const memory::Range> ranges, memory::Ticket ticket) const override {
    return port_->gather(to, ranges, ticket);
  }
  memory::Outcome scatter(std::span<const memory::Range> ranges, const void* from,
                          memory::Ticket ticket) const override {
    return port_->scatter(ranges, from, ticket);
  }
  bool prompt() const override { return port_->prompt(); }

  void cut() { network_.cut(1); }
  bool step() override {
    bool busy = service_.memory->move(service_link_);
    busy |= service_link_.progress();
    return agent_link_.progress() || busy;
  }

 private:
  static constexpr uint64_t kFewBytes = 4096;  // so that accesses wait for room

  struct Service : agent::LinkOwner {
    explicit Service(std::shared_ptr<agent::FarMemory> far) : memory(std::move(far)) {}
    agent::Place place_for(const wire::LinkMessage& message, size_t bytes) override {
      return memory->place_for(message, bytes);
    }
    void on_message(const wire::LinkMessage& message, fabric::Bytes payload) override {
      memory->on_message(message, payload);
    }
    void on_entry(const wire::LinkEntry&) override {}
    void on_sent(uint64_t number) override { memory->on_sent(number); }
    void on_lost(const char*) override { memory->lose(); }
    std::shared_ptr<agent::FarMemory> memory;
  };
  struct Host : agent::LinkOwner {
    explicit Host(std::shared_ptr<memory::Port> clients) : port(std::move(clients)) {}
    agent::Place place_for(const wire::LinkMessage& message, size_t bytes) override {
      return agent::place_for_put(port, message, bytes);
    }
    void on_message(const wire::LinkMessage& message, fabric::Bytes payload) override {
      agent::do_access(port, message, payload, *link);
    }
    void on_entry(const wire::LinkEntry&) override {}
    void on_sent(uint64_t) override {}
    void on_lost(const char*) override {}
    std::shared_ptr<memory::Port> port;
    agent::Link* link = nullptr;
  };

  fabric::LoopbackNetwork network_;
  Service service_;
  Host agent_;
  agent::Link service_link_, agent_link_;
  std::shared_ptr<memory::Port> port_;
};

}  // namespace offpath::testing
