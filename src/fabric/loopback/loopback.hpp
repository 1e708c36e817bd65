// SPDX-License-Identifier: BSD-3-Clause
// Loopback: a fabric inside one process, so that one test can run many workers. Deterministic: messages are delivered
// in an order drawn from a seed, payloads alternate between eager and announced, peers can be cut off.
#pragma once

#include "fabric/fabric.hpp"

#include <memory>
#include <random>

namespace offpath::fabric {

// The wire that joins the endpoints; must outlive them.
class LoopbackNetwork {
 public:
  explicit LoopbackNetwork(uint64_t seed);
  ~LoopbackNetwork();
  std::unique_ptr<Fabric> make_endpoint();
  // Every other endpoint sees endpoint `index` (in the order of making) as lost, and it sees nobody any more.
  void cut(uint32_t index);
  // Two endpoints lose each other, and what is under way between them; they can connect again.
  void disconnect(uint32_t one, uint32_t other);
  // Messages under way between all endpoints.
  size_t in_flight() const;

 private:
  friend class LoopbackFabric;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace offpath::fabric
