// SPDX-License-Identifier: BSD-3-Clause
// A fabric in virtual time: headers and batches arrive as they are when the simulated network has brought them, blocks
// are only counted. Sender and receiver are charged for each message; a payload is the sender's again when the receiver
// has taken it.
#pragma once

#include "fabric/fabric.hpp"
#include "model/account.hpp"
#include "model/machine.hpp"
#include "model/network.hpp"

#include <array>
#include <map>

namespace offpath::model {

// By node; what the endpoints of one simulation share.
class VirtualFabric;
struct VirtualWire {
  Network& network;
  const Machine& machine;
  std::vector<VirtualFabric*> endpoints = {};
};

class VirtualFabric : public fabric::Fabric {
 public:
  // `ring`: progress() has something to do.
  VirtualFabric(VirtualWire& wire, Account& account, Action ring);

  void set_receiver(fabric::Receiver* receiver) override { receiver_ = receiver; }
  std::vector<uint8_t> address() const override { return address_of(node_); }
  base::Result<fabric::Peer> connect(fabric::Bytes address) override;
  std::optional<fabric::Peer> find(fabric::Bytes address) const override;
  void give_up(fabric::Peer) override {}
  void send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context) override;
  void fetch(fabric::Announced, void*, size_t, uint64_t) override {}  // nothing is announced
  void drop(fabric::Announced) override {}
  // One message of each peer.
  bool progress() override;
  int event_fd() const override { return -1; }
  bool arm() override { return true; }
  void flush(int) override {}

  static std::vector<uint8_t> address_of(uint32_t node);
  bool has_work() const { return !sent_.empty() || !arrived_.empty(); }

 private:
  struct Packet {
    uint32_t from;
    std::array<uint8_t, fabric::kMaxHeaderBytes> header;
    size_t header_bytes;
    fabric::Bytes payload;  // where it lies at the sender
    uint64_t context;
  };
  void take(const Packet& packet);
  void release(uint64_t context);

  VirtualWire& wire_;
  Account& account_;
  const Action ring_;
  const uint32_t node_;
  fabric::Receiver* receiver_ = nullptr;
  std::map<uint32_t, std::deque<Packet>> arrived_;  // by sender
  std::vector<uint64_t> sent_;                      // contexts
};

}  // namespace offpath::model
