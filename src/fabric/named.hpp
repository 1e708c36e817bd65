// SPDX-License-Identifier: BSD-3-Clause
// Named: the fabric that a worker of a service has. Its address begins with the name of its fabric and a colon, so that
// no fabric is ever asked to read the address of another. It is not there before somebody needs its address: without
// other nodes there is no port that a stranger could talk to, and no thread or descriptor for it.
#pragma once

#include "fabric/fabric.hpp"

#include <memory>
#include <string>

namespace offpath::fabric {

class Named : public Fabric {
 public:
  // The context must outlive it. A name is of lower case letters, digits and _.
  Named(const char* name, Context& context) : name_(name), context_(context) {}

  // Once; from then on it is an endpoint of the context.
  base::Status open();

  void set_receiver(Receiver* receiver) override;
  // Empty: not open.
  std::vector<uint8_t> address() const override;
  base::Result<Peer> connect(Bytes address) override;
  std::optional<Peer> find(Bytes address) const override;
  // There is no peer before it is open, so nothing to do for one.
  void give_up(Peer peer) override { fabric_->give_up(peer); }
  void send(Peer peer, Bytes header, Bytes payload, uint64_t context, Of of) override {
    fabric_->send(peer, header, payload, context, of);
  }
  uint64_t backlog(Peer peer) const override { return fabric_->backlog(peer); }
  Connection connection(Peer peer) const override {
    return fabric_ == nullptr ? Connection() : fabric_->connection(peer);
  }
  Connection connections() override { return fabric_ == nullptr ? Connection() : fabric_->connections(); }
  void fetch(Announced handle, void* buffer, size_t bytes, uint64_t context) override {
    fabric_->fetch(handle, buffer, bytes, context);
  }
  void drop(Announced handle) override { fabric_->drop(handle); }
  base::Result<std::shared_ptr<Group>> join(const GroupSpec& spec) override {
    return fabric_ == nullptr ? Fabric::join(spec) : fabric_->join(spec);
  }
  bool progress() override { return fabric_ != nullptr && fabric_->progress(); }
  int event_fd() const override { return fabric_ == nullptr ? -1 : fabric_->event_fd(); }
  bool arm() override { return fabric_ == nullptr || fabric_->arm(); }
  void flush(int timeout_ms) override {
    if (fabric_ != nullptr) fabric_->flush(timeout_ms);
  }

 private:
  // What the fabric itself calls that address; nothing: it is not of this fabric.
  std::optional<Bytes> own_part(Bytes address) const;

  const std::string name_;
  Context& context_;
  Receiver* receiver_ = nullptr;
  std::unique_ptr<Fabric> fabric_;
};

}  // namespace offpath::fabric
