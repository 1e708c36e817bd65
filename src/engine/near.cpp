// SPDX-License-Identifier: BSD-3-Clause
// What members that one service serves say to each other. Between members of one worker it never leaves the engine.
#include "engine/imports.hpp"
#include "engine/peers.hpp"

namespace offpath::engine {

using wire::Message;

void Peers::send_near(uint32_t worker, const Message& message, fabric::Bytes payload) {
  if (worker != s_.config.worker) return s_.neighbours.send(worker, message, payload);
  s_.near.push_back({message, {payload.begin(), payload.end()}, {}, false});
}

void Peers::offer_near(uint32_t worker, uint64_t pull_id, Location source, uint64_t bytes) {
  if (worker != s_.config.worker) {
    return s_.neighbours.offer(worker, pull_id, std::move(source.memory), source.address, bytes);
  }
  NearMessage offer;
  offer.source = std::move(source);
  offer.is_offer = true;
  offer.message.pull_id = pull_id;
  offer.message.bytes = bytes;
  s_.near.push_back(std::move(offer));
}

void State::deliver_near() {
  NearMessage next = std::move(near.front());
  near.pop_front();
  if (next.is_offer) return imports->take_offer(next.message.pull_id, std::move(next.source), next.message.bytes);
  dispatch(next.message, next.payload);
}

void Engine::on_neighbour_message(const Message& message, fabric::Bytes payload) {
  state_->dispatch(message, payload);
  state_->settle();
}

void Engine::on_neighbour_offer(uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
                                uint64_t bytes) {
  state_->imports->take_offer(pull_id, {std::move(memory), address}, bytes);
  state_->settle();
}

}  // namespace offpath::engine
