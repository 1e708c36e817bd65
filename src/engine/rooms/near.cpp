// SPDX-License-Identifier: BSD-3-Clause
// What members that one service serves say to each other. Between members of one worker it never leaves the engine.
#include "engine/rooms/imports.hpp"
#include "engine/rooms/messages.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using wire::Message;

void Peers::send_near(uint32_t worker, const Message& message, fabric::Bytes payload) {
  if (worker != config_.worker) return neighbours_.send(worker, message, payload);
  near_.push_back({message, {payload.begin(), payload.end()}, {}, false});
  runner_.put_off();
}

void Peers::offer_near(uint32_t worker, uint64_t pull_id, Location source, uint64_t bytes) {
  if (worker != config_.worker) {
    return neighbours_.offer(worker, pull_id, std::move(source.memory), source.address, bytes);
  }
  NearMessage offer;
  offer.source = std::move(source);
  offer.is_offer = true;
  offer.message.pull_id = pull_id;
  offer.message.bytes = bytes;
  near_.push_back(std::move(offer));
  runner_.put_off();
}

void Peers::deliver_near() {
  NearMessage next = std::move(near_.front());
  near_.pop_front();
  if (next.is_offer) return imports_.take_offer(next.message.pull_id, std::move(next.source), next.message.bytes);
  messages_.dispatch(next.message, next.payload);
}

}  // namespace offpath::engine
