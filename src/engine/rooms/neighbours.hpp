// SPDX-License-Identifier: BSD-3-Clause
// Neighbours: how members that other workers of this service serve are reached. Called on the worker's thread; blocks nobody.
#pragma once

#include "fabric/fabric.hpp"
#include "memory/port.hpp"
#include "wire/message.hpp"

#include <cstdint>
#include <memory>

namespace offpath::engine {

// The other workers of this service. Nothing here calls back into an engine.
class Neighbours {
 public:
  virtual ~Neighbours() = default;
  // The payload (requests and replies) is the caller's again on return. Messages to one worker keep their order.
  virtual void send(uint32_t worker, const wire::Message& message, fabric::Bytes payload) = 0;
  // Answers a pull of a member served there (Engine::on_neighbour_offer): it may read `bytes` bytes at `address` of
  // `memory` until it says done, and keeps the memory meanwhile (what is_over() says counts). With 0 bytes the memory is null.
  virtual void offer(uint32_t worker, uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
                     uint64_t bytes) = 0;
};

}  // namespace offpath::engine
