// SPDX-License-Identifier: BSD-3-Clause
// A fabric that counts what is sent through it.
#pragma once

#include "fabric/fabric.hpp"
#include "fabric/loopback/groups.hpp"
#include "wire/message.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace offpath::testing {

class CountingFabric : public fabric::Fabric {
 public:
  explicit CountingFabric(std::unique_ptr<fabric::Fabric> fabric) : fabric_(std::move(fabric)) {}
  void set_receiver(fabric::Receiver* receiver) override { fabric_->set_receiver(receiver); }
  std::vector<uint8_t> address() const override { return fabric_->address(); }
  base::Result<fabric::Peer> connect(fabric::Bytes address) override { return fabric_->connect(address); }
  std::optional<fabric::Peer> find(fabric::Bytes address) const override { return fabric_->find(address); }
  void give_up(fabric::Peer peer) override { fabric_->give_up(peer); }
  void send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context, fabric::Of of) override;
  base::Result<std::shared_ptr<fabric::Group>> join(const fabric::GroupSpec& spec) override;
  uint64_t backlog(fabric::Peer peer) const override { return fabric_->backlog(peer); }
  fabric::Connection connection(fabric::Peer) const override { return {.disordered = loses ? ++disordered_ : 0}; }
  void fetch(fabric::Announced handle, void* buffer, size_t bytes, uint64_t context) override {
    fabric_->fetch(handle, buffer, bytes, context);
  }
  void drop(fabric::Announced handle) override { fabric_->drop(handle); }
  bool progress() override { return fabric_->progress(); }
  int event_fd() const override { return -1; }
  bool arm() override { return fabric_->arm(); }
  void flush(int timeout_ms) override { fabric_->flush(timeout_ms); }
  std::vector<wire::Kind> sent;
  std::vector<wire::Kind> batched;  // in batches
  bool loses = false;               // whenever somebody looks, segments have come behind gaps
  std::set<fabric::Of> data_of;     // what was said of blocks'
  std::vector<std::shared_ptr<fabric::Group>> groups_joined;
  fabric::LoopbackGroups* groups = nullptr;  // null: no multicast
  std::function<std::shared_ptr<fabric::Group>(std::shared_ptr<fabric::Group>)> wrap_group;

 private:
  mutable uint64_t disordered_ = 0;
  std::unique_ptr<fabric::Fabric> fabric_;
};

}  // namespace offpath::testing
