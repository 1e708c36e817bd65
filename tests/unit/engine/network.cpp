// SPDX-License-Identifier: BSD-3-Clause
#include "network.hpp"

#include "../fabric/own_network.hpp"
#include "fabric/loopback/loopback.hpp"
#include "fabric/tcp/endpoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace offpath::testing {
namespace {

class InProcess : public Network {
 public:
  explicit InProcess(uint64_t seed) : network_(seed) {}
  std::unique_ptr<fabric::Fabric> make_endpoint() override { return network_.make_endpoint(); }
  void cut(uint32_t index) override { network_.cut(index); }
  bool disconnect(uint32_t one, uint32_t other) override { return network_.disconnect(one, other), true; }
  size_t in_flight() const override { return network_.in_flight(); }

 private:
  fabric::LoopbackNetwork network_;
};

class Sockets : public Network {
 public:
  explicit Sockets(uint64_t seed) {
    options_.devices = "lo";
    options_.tick_ms = 1;
    options_.brief_bytes = seed % 3 == 0 ? fabric::tcp::kBriefBytes : 20 * (seed % 3);  // chunks are short here
    options_.security = static_cast<fabric::tcp::Security>(1 + seed % 3);
  }
  std::unique_ptr<fabric::Fabric> make_endpoint() override {
    auto made = std::make_unique<fabric::tcp::Endpoint>(options_);
    const base::Status opened = made->open();
    EXPECT_TRUE(opened.ok()) << opened.text();
    auto end = std::make_unique<End>(*this, std::move(made));
    ends_.push_back(end.get());
    return end;
  }
  void cut(uint32_t index) override {
    uncertain_ = true;
    ends_[index]->die();
  }
  void silence() override { silent_ = true; }
  // Who is being connected to may be dead: that is found out.
  size_t in_flight() const override {
    if (silent_) return 0;
    if (!uncertain_) return sent_ - arrived_;
    return static_cast<size_t>(
        std::count_if(ends_.begin(), ends_.end(), [](const End* end) { return end->is_connecting(); }));
  }
  int patience() const override { return silent_ ? 8 : uncertain_ ? 2 : 0; }

 private:
  // Counts what leaves and what comes.
  class End : public fabric::Fabric, public fabric::Receiver {
   public:
    End(Sockets& network, std::unique_ptr<fabric::tcp::Endpoint> fabric)
        : network_(network), fabric_(std::move(fabric)), address_(fabric_->address()) {
      fabric_->set_receiver(this);
    }
    void die() { fabric_.reset(); }
    bool is_connecting() const { return fabric_ && fabric_->is_connecting(); }
    void set_receiver(fabric::Receiver* receiver) override { receiver_ = receiver; }
    // That of a dead one, too: two dead nodes are not one.
    std::vector<uint8_t> address() const override { return address_; }
    base::Result<fabric::Peer> connect(fabric::Bytes address) override {
      if (fabric_) return fabric_->connect(address);
      return base::Status::error(OFFPATH_ERR_PEER_LOST, "this node is dead");
    }
    std::optional<fabric::Peer> find(fabric::Bytes address) const override {
      return fabric_ ? fabric_->find(address) : std::nullopt;
    }
    void give_up(fabric::Peer peer) override {
      network_.uncertain_ = true;
      if (fabric_) fabric_->give_up(peer);
    }
    void send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context,
              fabric::Of of) override {
      if (!fabric_) return;
      ++network_.sent_;
      fabric_->send(peer, header, payload, context, of);
    }
    uint64_t backlog(fabric::Peer peer) const override { return fabric_ ? fabric_->backlog(peer) : 0; }
    void fetch(fabric::Announced handle, void* buffer, size_t bytes, uint64_t context) override {
      if (fabric_) fabric_->fetch(handle, buffer, bytes, context);
    }
    void drop(fabric::Announced handle) override {
      ++network_.arrived_;
      if (fabric_) fabric_->drop(handle);
    }
    bool progress() override { return fabric_ && fabric_->progress(); }
    int event_fd() const override { return -1; }
    bool arm() override { return !fabric_ || fabric_->arm(); }
    void flush(int timeout_ms) override {
      if (fabric_) fabric_->flush(timeout_ms);
    }

    void on_message(fabric::Bytes header, fabric::Bytes payload) override {
      ++network_.arrived_;
      receiver_->on_message(header, payload);
    }
    void on_announced(fabric::Bytes header, size_t bytes, fabric::Announced handle) override {
      receiver_->on_announced(header, bytes, handle);
    }
    void on_fetched(uint64_t context, bool success) override {
      ++network_.arrived_;
      receiver_->on_fetched(context, success);
    }
    void on_sent(uint64_t context, bool success) override { receiver_->on_sent(context, success); }
    void on_peer_lost(fabric::Peer peer) override {
      network_.uncertain_ = true;
      receiver_->on_peer_lost(peer);
    }

   private:
    Sockets& network_;
    std::unique_ptr<fabric::tcp::Endpoint> fabric_;
    const std::vector<uint8_t> address_;
    fabric::Receiver* receiver_ = nullptr;
  };

  fabric::tcp::Options options_;
  std::vector<End*> ends_;
  size_t sent_ = 0, arrived_ = 0;
  bool silent_ = false;
  bool uncertain_ = false;  // somebody is gone, so what was for him never arrives
};

}  // namespace

std::unique_ptr<Network> make_network(uint64_t seed) {
  const char* kind = getenv("OFFPATH_TEST_FABRIC");
  if (kind != nullptr && strcmp(kind, "tcp") == 0) {
    [[maybe_unused]] static const bool alone = enter_own_network();
    return std::make_unique<Sockets>(seed);
  }
  return std::make_unique<InProcess>(seed);
}

}  // namespace offpath::testing
