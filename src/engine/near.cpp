// SPDX-License-Identifier: BSD-3-Clause
// What members that one service serves say to each other. Between members of one worker it never leaves the engine.
#include "engine/state.hpp"

namespace offpath::engine {

using wire::Message;

void Engine::State::send_near(uint32_t worker, const Message& message, fabric::Bytes payload) {
  if (worker != config.worker) return neighbours.send(worker, message, payload);
  near.push_back({message, {payload.begin(), payload.end()}, {}, false});
}

void Engine::State::offer_near(uint32_t worker, uint64_t pull_id, Location source, uint64_t bytes) {
  if (worker != config.worker) {
    return neighbours.offer(worker, pull_id, std::move(source.memory), source.address, bytes);
  }
  NearMessage offer;
  offer.source = std::move(source);
  offer.is_offer = true;
  offer.message.pull_id = pull_id;
  offer.message.bytes = bytes;
  near.push_back(std::move(offer));
}

void Engine::State::deliver_near() {
  NearMessage next = std::move(near.front());
  near.pop_front();
  if (next.is_offer) return take_offer(next.message.pull_id, std::move(next.source), next.message.bytes);
  dispatch(next.message, next.payload);
}

void Engine::State::take_offer(uint64_t pull_id, Location source, uint64_t bytes) {
  const auto it = pulls.find(pull_id);
  if (it == pulls.end()) return;
  const Pull& pull = it->second;
  Operation& operation = *pull.operation;
  operation.note_begun(operation.graph.steps[pull.step].peer);
  if (bytes > pull.limit) return refuse_message("an offer of more than was asked for");
  if (bytes == 0) return finish_pull(pull_id, {}, Cause::complete);
  local.push_back(std::make_shared<LocalWork>(LocalWork{.operation = &operation,
                                                        .step = pull.step,
                                                        .pull_id = pull_id,
                                                        .source = std::move(source),
                                                        .target = pull.target,
                                                        .bytes = bytes}));
}

void Engine::on_neighbour_message(const Message& message, fabric::Bytes payload) {
  state_->dispatch(message, payload);
  state_->settle();
}

void Engine::on_neighbour_offer(uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
                                uint64_t bytes) {
  state_->take_offer(pull_id, {std::move(memory), address}, bytes);
  state_->settle();
}

}  // namespace offpath::engine
