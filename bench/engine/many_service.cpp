// SPDX-License-Identifier: BSD-3-Clause
#include "many_service.hpp"

#include "wire/message.hpp"

#include <algorithm>

namespace engine_bench {

void Service::send(fabric::Peer peer, fabric::Bytes header, fabric::Bytes payload, uint64_t context, fabric::Of) {
  const model::Service& s = world_.machine.service;
  const auto message = wire::decode(header);
  const bool is_block =
      message.ok() && (message.value().kind == wire::Kind::data || message.value().kind == wire::Kind::coded);
  account_.charge(s.message_ns +
                  static_cast<double>(payload.size()) * world_.machine.beyond_memory(s.send_ns_per_byte));
  const size_t kept = is_block ? 0 : payload.size();
  PacketPtr packet(static_cast<Packet*>(malloc(sizeof(Packet) + header.size() + kept)));
  if (packet == nullptr) abort();
  *packet = {number_,  peer,   static_cast<uint32_t>(header.size()), static_cast<uint32_t>(payload.size()),
             is_block, context};
  memcpy(packet->data(), header.data(), header.size());
  if (kept > 0) memcpy(packet->data() + header.size(), payload.data(), kept);
  ++messages_;
  ++world_.messages;
  world_.bytes += header.size() + payload.size();
  leaving_.push_back({std::move(packet), world_.events.now_ns() + account_.spent_ns() - begun_ns_});
  if (leaving_.size() == 1) leave();
}

// The first of those that leave is on the link.
void Service::leave() {
  const Leaving& first = leaving_.front();
  up_free_ns_ = std::max({up_free_ns_, first.from_ns, world_.events.now_ns()}) +
                first.packet->bytes_on(world_.machine) / world_.machine.rate_bytes_per_ns;
  world_.events.at(up_free_ns_, [this] {
    if (dead_) return;
    Packet* const packet = leaving_.front().packet.release();
    leaving_.pop_front();
    if (packet->payload_bytes > 0) {
      sent_.push_back(packet->context);
      ring();
    }
    Service* const to = world_.services[packet->to].get();
    world_.events.after(world_.machine.latency_ns, [to, packet] { to->arrive(packet); });
    if (!leaving_.empty()) leave();
  });
}

// Its first byte is at the switch; its last one comes when those before it have.
void Service::arrive(Packet* packet) {
  const double now_ns = world_.events.now_ns();
  down_free_ns_ = std::max(now_ns, down_free_ns_ + packet->bytes_on(world_.machine) / world_.machine.rate_bytes_per_ns);
  if (down_free_ns_ <= now_ns) return take(packet);
  world_.events.at(down_free_ns_, [this, packet] { take(packet); });
}

base::Result<fabric::Peer> Service::connect(fabric::Bytes address) {
  const fabric::Peer peer = *find(address);
  if (world_.mortal && connected_.insert(peer).second && world_.services[peer]->dead_) hear_end_of(peer);
  return peer;
}

void Service::die() {
  if (std::exchange(dead_, true)) return;
  for (const auto& other : world_.services) {
    if (other->connected_.contains(number_)) other->hear_end_of(number_);
  }
}

void Service::hear_end_of(fabric::Peer peer) {
  world_.events.after(world_.machine.latency_ns, [this, peer] {
    ended_.push_back(peer);
    ring();
  });
}

bool Service::progress() {
  const model::Service& s = world_.machine.service;
  bool busy = !sent_.empty() || !ended_.empty();
  for (const uint64_t context : std::exchange(sent_, {})) receiver_->on_sent(context, true);
  for (size_t left = arrived_.size(); left > 0; --left) {
    const PacketPtr packet = std::move(arrived_.front());
    arrived_.pop_front();
    if (lost_.contains(packet->from)) continue;
    account_.charge(s.message_ns + packet->payload_bytes * world_.machine.beyond_memory(s.receive_ns_per_byte));
    const uint8_t* const payload = packet->is_block ? world_.anything.data() : packet->data() + packet->header_bytes;
    receiver_->on_message({packet->data(), packet->header_bytes}, {payload, packet->payload_bytes});
    busy = true;
  }
  for (const fabric::Peer peer : std::exchange(ended_, {})) {
    lost_.insert(peer);
    receiver_->on_peer_lost(peer);
  }
  return busy;
}

}  // namespace engine_bench
