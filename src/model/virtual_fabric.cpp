// SPDX-License-Identifier: BSD-3-Clause
#include "model/virtual_fabric.hpp"

#include "wire/message.hpp"

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

VirtualFabric::VirtualFabric(VirtualWire& wire, uint32_t node, Account& account, Action ring)
    : wire_(wire), account_(account), ring_(std::move(ring)), node_(node) {
  wire.endpoints[node] = this;
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
  const auto packet = std::make_shared<Packet>(Packet{node_, {header.begin(), header.end()}, payload, {}});
  const auto message = wire::decode(header);
  if (!message.ok() || message.value().kind != wire::Kind::data) {
    packet->kept.assign(payload.begin(), payload.end());
    packet->payload = packet->kept;
  }
  account_.then([this, peer, packet, on_wire = m.header_bytes + bytes / m.wire_efficiency] {
    const Route route{node_, peer, wire_.machine.service.crossing_efficiency};
    wire_.network.send(kOfServices | uint64_t{node_} << 32 | peer, route, on_wire, [this, peer, packet] {
      VirtualFabric& to = *wire_.endpoints[peer];
      to.arrived_[node_].push_back(packet);
      to.ring_();
    });
  });
  if (payload.empty()) return;
  sockets_[peer].waiting.emplace_back(bytes, context);
  fill(sockets_[peer]);
}

bool VirtualFabric::fill(Socket& socket) {
  const size_t before = sent_.size();
  while (!socket.waiting.empty()) {
    const auto [bytes, context] = socket.waiting.front();
    if (socket.unread_bytes > 0 && socket.unread_bytes + bytes > wire_.machine.service.window_bytes) break;
    socket.waiting.pop_front();
    socket.unread_bytes += bytes;
    sent_.push_back(context);
  }
  return sent_.size() > before;
}

bool VirtualFabric::progress() {
  bool busy = false;
  for (const uint64_t context : std::exchange(sent_, {})) receiver_->on_sent(context, true), busy = true;
  for (auto it = arrived_.begin(); it != arrived_.end();) {
    const auto packet = std::move(it->second.front());
    it->second.pop_front();
    it = it->second.empty() ? arrived_.erase(it) : std::next(it);
    take(*packet);
    busy = true;
  }
  return busy;
}

void VirtualFabric::take(const Packet& packet) {
  const Service& s = wire_.machine.service;
  const auto bytes = static_cast<double>(packet.payload.size());
  account_.charge(s.message_ns + bytes * beyond_memory(s.receive_ns_per_byte, wire_.machine));
  receiver_->on_message(packet.header, packet.payload);
  if (bytes == 0) return;
  account_.then([this, bytes, &from = *wire_.endpoints[packet.from]] {
    Socket& socket = from.sockets_[node_];
    socket.unread_bytes -= bytes;
    if (from.fill(socket)) from.ring_();
  });
}

}  // namespace offpath::model
