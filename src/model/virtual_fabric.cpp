// SPDX-License-Identifier: BSD-3-Clause
#include "model/virtual_fabric.hpp"

#include "wire/message.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::model {
namespace {

constexpr uint64_t kOfServices = uint64_t{1} << 63;  // connections: other than those of native MPI
constexpr uint64_t kToAll = uint64_t{1} << 62;

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

void VirtualFabric::send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context, fabric::Of) {
  const Machine& m = wire_.machine;
  account_.charge(m.service.message_ns +
                  static_cast<double>(payload.size()) * m.beyond_memory(m.service.send_ns_per_byte));
  const auto packet = std::make_shared<Packet>(Packet{{header.begin(), header.end()}, payload, {}, context});
  const auto message = wire::decode(header);
  const bool block =
      message.ok() && (message.value().kind == wire::Kind::data || message.value().kind == wire::Kind::coded);
  if (!block) {
    packet->kept.assign(payload.begin(), payload.end());
    packet->payload = packet->kept;
  }
  account_.then([this, peer, packet] {
    sockets_[peer].waiting.push_back(packet);
    fill(peer);
  });
}

void VirtualFabric::fill(fabric::Peer peer) {
  const Machine& m = wire_.machine;
  Socket& socket = sockets_[peer];
  while (!socket.waiting.empty()) {
    const auto packet = socket.waiting.front();
    const auto bytes = static_cast<double>(packet->payload.size());
    if (socket.unread_bytes > 0 && socket.unread_bytes + bytes > m.service.window_bytes) return;
    socket.waiting.pop_front();
    socket.unread_bytes += bytes;
    const Route route{node_, peer, m.service.crossing_efficiency};
    wire_.network.send(kOfServices | uint64_t{node_} << 32 | peer, route, m.header_bytes + bytes / m.wire_efficiency,
                       [this, &to = *wire_.endpoints[peer], packet] {
                         to.arrived_[node_].push_back(packet);
                         to.ring_();
                       });
    if (bytes == 0) continue;
    sent_.push_back(packet->context);
    ring_();
  }
}

base::Result<std::shared_ptr<fabric::Group>> VirtualFabric::join(const fabric::GroupSpec& spec) {
  auto& members = wire_.groups[spec.team];
  if (members == nullptr) members = std::make_shared<VirtualMembers>();
  const VirtualGroup::Place place{
      wire_.network, wire_.machine, account_, ring_, node_, kOfServices | kToAll | uint64_t{node_} << 32 | joined_++};
  return std::shared_ptr<fabric::Group>(std::make_shared<VirtualGroup>(place, members, spec.own));
}

uint64_t VirtualFabric::backlog(fabric::Peer peer) const {
  const auto found = sockets_.find(peer);
  if (found == sockets_.end()) return 0;
  double bytes = found->second.unread_bytes;
  for (const auto& packet : found->second.waiting) bytes += static_cast<double>(packet->payload.size());
  return static_cast<uint64_t>(bytes);
}

bool VirtualFabric::progress() {
  bool busy = false;
  for (const uint64_t context : std::exchange(sent_, {})) receiver_->on_sent(context, true), busy = true;
  for (auto it = arrived_.begin(); it != arrived_.end();) {
    const uint32_t from = it->first;
    const auto packet = std::move(it->second.front());
    it->second.pop_front();
    it = it->second.empty() ? arrived_.erase(it) : std::next(it);
    take(from, *packet);
    busy = true;
  }
  return busy;
}

void VirtualFabric::take(fabric::Peer from, const Packet& packet) {
  const Service& s = wire_.machine.service;
  const auto bytes = static_cast<double>(packet.payload.size());
  account_.charge(s.message_ns + bytes * wire_.machine.beyond_memory(s.receive_ns_per_byte));
  receiver_->on_message(packet.header, packet.payload);
  if (bytes == 0) return;
  account_.then([this, bytes, &sender = *wire_.endpoints[from]] {
    sender.sockets_[node_].unread_bytes -= bytes;
    sender.fill(node_);
  });
}

}  // namespace offpath::model
