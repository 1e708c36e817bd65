// SPDX-License-Identifier: BSD-3-Clause
// A fabric in virtual time: messages arrive as they are when the simulated network has brought them, blocks are only
// counted. Both ends are charged for each. A payload is its sender's again when the socket has taken it: that has room
// for so many bytes which the receiver has not taken yet.
#pragma once

#include "fabric/fabric.hpp"
#include "model/account.hpp"
#include "model/machine.hpp"
#include "model/network.hpp"
#include "model/virtual_group.hpp"

#include <map>
#include <memory>

namespace offpath::model {

class VirtualFabric;

// What the endpoints of one simulation share.
struct VirtualWire {
  Network& network;
  const Machine& machine;
  std::vector<VirtualFabric*> endpoints;                                           // by node; null: none yet
  std::map<std::array<uint8_t, 16>, std::shared_ptr<VirtualMembers>> groups = {};  // by team
};

class VirtualFabric : public fabric::Fabric {
 public:
  // `ring`: progress() has something to do.
  VirtualFabric(VirtualWire& wire, uint32_t node, Account& account, Action ring);

  void set_receiver(fabric::Receiver* receiver) override { receiver_ = receiver; }
  std::vector<uint8_t> address() const override { return address_of(node_); }
  base::Result<fabric::Peer> connect(fabric::Bytes address) override;
  std::optional<fabric::Peer> find(fabric::Bytes address) const override;
  void give_up(fabric::Peer) override {}
  void send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context, fabric::Of of) override;
  uint64_t backlog(fabric::Peer peer) const override;
  void fetch(fabric::Announced, void*, size_t, uint64_t) override {}  // nothing is announced
  void drop(fabric::Announced) override {}
  base::Result<std::shared_ptr<fabric::Group>> join(const fabric::GroupSpec& spec) override;
  // One message of each peer.
  bool progress() override;
  int event_fd() const override { return -1; }
  bool arm() override { return true; }
  void flush(int) override {}

  static std::vector<uint8_t> address_of(uint32_t node);
  bool has_work() const { return !sent_.empty() || !arrived_.empty(); }

 private:
  struct Packet {
    std::vector<uint8_t> header;
    fabric::Bytes payload;      // of a block: as long, but any bytes
    std::vector<uint8_t> kept;  // of what is no block
    uint64_t context;
  };
  struct Socket {
    double unread_bytes = 0;
    std::deque<std::shared_ptr<const Packet>> waiting;
  };
  void take(fabric::Peer from, const Packet& packet);
  // What waits for that peer and what its socket has room for is on its way.
  void fill(fabric::Peer peer);

  VirtualWire& wire_;
  Account& account_;
  const Action ring_;
  const uint32_t node_;
  fabric::Receiver* receiver_ = nullptr;
  std::map<uint32_t, std::deque<std::shared_ptr<const Packet>>> arrived_;  // by sender
  std::map<uint32_t, Socket> sockets_;                                     // by receiver
  std::vector<uint64_t> sent_;                                             // contexts
  uint32_t joined_ = 0;                                                    // groups, so far
};

}  // namespace offpath::model
