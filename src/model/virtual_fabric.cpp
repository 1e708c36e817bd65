// SPDX-License-Identifier: BSD-3-Clause
#include "model/virtual_fabric.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::model {
namespace {

constexpr uint64_t kOfServices = uint64_t{1} << 63;  // connections: other than those of native MPI

// What a block costs besides being read from the client's memory, or written to it, which the port charges.
double beyond_memory(double ns_per_byte, const Machine& machine) {
  return std::max(0.0, ns_per_byte - 1 / machine.cma_bytes_per_ns);
}

}  // namespace

VirtualFabric::VirtualFabric(VirtualWire& wire, Account& account, Action ring)
    : wire_(wire), account_(account), ring_(std::move(ring)), node_(static_cast<uint32_t>(wire.endpoints.size())) {
  wire.endpoints.push_back(this);
}

std::vector<uint8_t> VirtualFabric::address_of(uint32_t node) {
  std::vector<uint8_t> out(sizeof(node));
  memcpy(out.data(), &node, sizeof(node));
  return out;
}

std::optional<fabric::Peer> VirtualFabric::find(fabric::Bytes address) const {
  uint32_t node = 0;
  if (address.size() != sizeof(node)) return std::nullopt;
  memcpy(&node, address.data(), sizeof(node));
  return node < wire_.endpoints.size() ? std::optional(fabric::Peer{node}) : std::nullopt;
}

base::Result<fabric::Peer> VirtualFabric::connect(fabric::Bytes address) {
  const auto peer = find(address);
  if (peer) return *peer;
  return base::Status::error(OFFPATH_ERR_ARGUMENT, "the address of no node");
}

void VirtualFabric::send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context) {
  const Machine& m = wire_.machine;
  const auto bytes = static_cast<double>(payload.size());
  account_.charge(m.service.message_ns + bytes * beyond_memory(m.service.send_ns_per_byte, m));
  Packet packet{node_, {}, header.size(), payload, context};
  std::copy(header.begin(), header.end(), packet.header.begin());
  account_.then([this, peer, packet, on_wire = m.header_bytes + bytes / m.wire_efficiency] {
    VirtualFabric& to = *wire_.endpoints[peer];
    const Route route{node_, peer, wire_.machine.service.crossing_efficiency};
    wire_.network.send(kOfServices | uint64_t{node_} << 32 | peer, route, on_wire, [&to, packet] {
      to.arrived_[packet.from].push_back(packet);
      to.ring_();
    });
  });
}

bool VirtualFabric::progress() {
  bool busy = false;
  for (const uint64_t context : std::exchange(sent_, {})) receiver_->on_sent(context, true), busy = true;
  for (auto it = arrived_.begin(); it != arrived_.end();) {
    const Packet packet = it->second.front();
    it->second.pop_front();
    it = it->second.empty() ? arrived_.erase(it) : std::next(it);
    take(packet);
    busy = true;
  }
  return busy;
}

void VirtualFabric::take(const Packet& packet) {
  const Service& s = wire_.machine.service;
  const auto bytes = static_cast<double>(packet.payload.size());
  account_.charge(s.message_ns + bytes * beyond_memory(s.receive_ns_per_byte, wire_.machine));
  receiver_->on_message(fabric::Bytes(packet.header.data(), packet.header_bytes), packet.payload);
  if (packet.payload.empty()) return;
  account_.then([this, packet] { wire_.endpoints[packet.from]->release(packet.context); });
}

void VirtualFabric::release(uint64_t context) {
  sent_.push_back(context);
  ring_();
}

}  // namespace offpath::model
