// SPDX-License-Identifier: BSD-3-Clause
// One of many services (many.hpp): the planner's worker (model/service.cpp) with a fabric that keeps nothing for a pair of services.
#pragma once

#include "many.hpp"

#include "engine/engine.hpp"
#include "model/virtual_coder.hpp"
#include "model/virtual_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <set>

namespace engine_bench {

using namespace offpath;

inline constexpr size_t kAddressBytes = 48;  // of a service with one network

// A message under way, with its header and payload behind it. Of a block's payload only the length is.
struct Packet {
  uint32_t from, to, header_bytes, payload_bytes;
  bool is_block;
  uint64_t context;
  uint8_t* data() { return reinterpret_cast<uint8_t*>(this + 1); }
  double bytes_on(const model::Machine& m) const { return m.header_bytes + payload_bytes / m.wire_efficiency; }
};
struct Free {
  void operator()(Packet* packet) const { free(packet); }
};
using PacketPtr = std::unique_ptr<Packet, Free>;

class Service;

// What all services share.
struct World {
  model::Events events;
  model::Machine machine;
  std::vector<std::unique_ptr<Service>> services;
  std::vector<uint8_t> anything;  // what stands for the bytes of blocks
  uint64_t messages = 0, bytes = 0, ended = 0;
  base::Status problem;
  bool mortal = false;  // who is connected to whom is kept then, and operations may fail
};

inline std::vector<uint8_t> address_of(uint32_t number) {
  std::vector<uint8_t> address(kAddressBytes);
  memcpy(address.data(), &number, sizeof(number));
  return address;
}

class Service : public fabric::Fabric, engine::Observer, engine::Neighbours {
 public:
  Service(World& world, uint32_t number)
      : world_(world),
        number_(number),
        account_(core_, world.machine.service.speed),
        memory_(std::make_shared<model::VirtualPort>(account_, 1 / world.machine.cma_bytes_per_ns)),
        doer_(account_, 1 / world.machine.reduce_bytes_per_ns,
              std::make_shared<model::VirtualPort>(account_, 1 / world.machine.copy_bytes_per_ns,
                                                   std::span(world.anything))),
        coder_(account_, world.machine.compression),
        engine_(config(), *this, *this, *this) {
    engine_.add_client(number, memory_);
  }

  engine::Engine& engine() { return engine_; }
  uint64_t messages() const { return messages_; }
  Fate& fate() { return fate_; }
  size_t connected_count() const { return connected_.size(); }
  bool is_dead() const { return dead_; }
  // Who is connected to it hears so behind all that it has sent.
  void die();
  void begin(model::Action post) {
    posts_.push_back(std::move(post));
    ring();
  }
  // What it has put off as others may follow, which the worker says when it has slept for a while.
  void say_rest() {
    if (!engine_.senders_wait()) return;
    engine_.tell_senders();
    ring();
  }

  // Fabric
  void set_receiver(fabric::Receiver* receiver) override { receiver_ = receiver; }
  std::vector<uint8_t> address() const override { return address_of(number_); }
  std::optional<fabric::Peer> find(fabric::Bytes address) const override {
    uint32_t number = 0;
    memcpy(&number, address.data(), sizeof(number));
    return number;
  }
  base::Result<fabric::Peer> connect(fabric::Bytes address) override;
  void give_up(fabric::Peer) override {}
  uint64_t backlog(fabric::Peer) const override { return 0; }
  void fetch(fabric::Announced, void*, size_t, uint64_t) override {}  // nothing is announced
  void drop(fabric::Announced) override {}
  int event_fd() const override { return -1; }
  bool arm() override { return true; }
  void flush(int) override {}
  void send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context, fabric::Of) override;
  bool progress() override;

 private:
  engine::Config config() {
    engine::Config config;
    config.now_ns = [this] { return static_cast<uint64_t>(world_.events.now_ns()); };
    config.chunk_bytes = static_cast<size_t>(world_.machine.service.chunk_bytes);
    config.pool_chunks = 32;
    config.worker = 0;
    config.doer = &doer_;
    config.coder = &coder_;
    return config;
  }

  void ring() {
    if (dead_ || std::exchange(awake_, true)) return;
    world_.events.after(world_.machine.service.wake_ns, [this] { work(); });
  }
  void work() {
    if (dead_) return;
    begun_ns_ = account_.spent_ns();
    for (const model::Action& post : std::exchange(posts_, {})) post();
    const bool busy = engine_.progress();
    account_.then([this, busy] {
      if (busy || !posts_.empty() || !arrived_.empty() || !sent_.empty() || !ended_.empty()) return work();
      awake_ = false;
    });
  }
  void leave();
  void hear_end_of(fabric::Peer peer);
  void arrive(Packet* packet);
  void take(Packet* packet) {
    arrived_.emplace_back(packet);
    ring();
  }

  // Observer, Neighbours
  void on_step(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_served(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_member_lost(engine::ClientId, uint64_t, uint32_t rank, engine::Loss) override {
    fate_.lost.insert(rank);
    fate_.told_ns = world_.events.now_ns();
  }
  void on_finished(engine::ClientId, uint64_t, base::Status status) override {
    fate_.status = status.code();
    if (!status.ok() && !world_.mortal) world_.problem = status;
    account_.then([this] { ++world_.ended; });
  }
  void send(uint32_t, const wire::Message&, fabric::Bytes) override {}
  void offer(uint32_t, uint64_t, std::shared_ptr<memory::Port>, uint64_t, uint64_t) override {}

  World& world_;
  const uint32_t number_;
  model::Core core_{world_.events};
  model::Account account_;
  const std::shared_ptr<memory::Port> memory_;
  model::VirtualDoer doer_;
  model::VirtualCoder coder_;
  fabric::Receiver* receiver_ = nullptr;
  struct Leaving {
    PacketPtr packet;
    double from_ns;  // the processor is done with it then
  };
  std::deque<Leaving> leaving_;    // on the link up, in order
  std::deque<PacketPtr> arrived_;  // not taken yet
  std::vector<uint64_t> sent_;     // contexts
  double up_free_ns_ = 0, down_free_ns_ = 0, begun_ns_ = 0;
  uint64_t messages_ = 0;
  std::vector<model::Action> posts_;
  bool awake_ = false, dead_ = false;
  std::set<fabric::Peer> connected_, lost_;  // among the mortal
  std::vector<fabric::Peer> ended_;          // of these: not told yet
  Fate fate_;
  engine::Engine engine_;
};

}  // namespace engine_bench
