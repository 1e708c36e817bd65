// SPDX-License-Identifier: BSD-3-Clause
// OnDemand: a fabric that is not there before somebody needs its address: without other nodes there is no port that a
// stranger could talk to, and no thread or descriptor for it.
#pragma once

#include "fabric/fabric.hpp"

#include <functional>
#include <memory>

namespace offpath::fabric {

class OnDemand : public Fabric {
 public:
  using Open = std::function<base::Result<std::unique_ptr<Fabric>>()>;
  explicit OnDemand(Open open) : open_(std::move(open)) {}

  // Once; from then on it is the other fabric.
  base::Status open() {
    if (fabric_ != nullptr) return {};
    auto opened = open_();
    if (!opened.ok()) return opened.status();
    fabric_ = std::move(opened.value());
    fabric_->set_receiver(receiver_);
    return {};
  }

  void set_receiver(Receiver* receiver) override {
    receiver_ = receiver;
    if (fabric_ != nullptr) fabric_->set_receiver(receiver);
  }
  std::vector<uint8_t> address() const override {
    return fabric_ == nullptr ? std::vector<uint8_t>() : fabric_->address();
  }
  base::Result<Peer> connect(Bytes address) override {
    if (fabric_ != nullptr) return fabric_->connect(address);
    return base::Status::error(OFFPATH_ERR_PEER_LOST, "a member on another node, where none was to be");
  }
  std::optional<Peer> find(Bytes address) const override {
    return fabric_ == nullptr ? std::nullopt : fabric_->find(address);
  }
  // There is no peer before it is open, so nothing to do for one.
  void give_up(Peer peer) override { fabric_->give_up(peer); }
  void send(Peer peer, Bytes header, Bytes payload, uint64_t context) override {
    fabric_->send(peer, header, payload, context);
  }
  void fetch(Announced handle, void* buffer, size_t bytes, uint64_t context) override {
    fabric_->fetch(handle, buffer, bytes, context);
  }
  void drop(Announced handle) override { fabric_->drop(handle); }
  bool progress() override { return fabric_ != nullptr && fabric_->progress(); }
  int event_fd() const override { return fabric_ == nullptr ? -1 : fabric_->event_fd(); }
  bool arm() override { return fabric_ == nullptr || fabric_->arm(); }
  void flush(int timeout_ms) override {
    if (fabric_ != nullptr) fabric_->flush(timeout_ms);
  }

 private:
  Open open_;
  Receiver* receiver_ = nullptr;
  std::unique_ptr<Fabric> fabric_;
};

}  // namespace offpath::fabric
