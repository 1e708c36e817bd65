// SPDX-License-Identifier: BSD-3-Clause
// The MPI library inside a rank: it moves messages only while the rank is in one of its calls. What comes meanwhile
// waits.
#pragma once

#include "model/core.hpp"
#include "model/network.hpp"

#include <utility>
#include <vector>

namespace offpath::model {

class Agent {
 public:
  Agent(Core& core, uint32_t node, double crossing_efficiency)
      : core_(core), node_(node), crossing_efficiency_(crossing_efficiency) {}

  uint32_t node() const { return node_; }
  Route route_to(const Agent& other) const { return {node_, other.node_, crossing_efficiency_}; }

  // Does `action` after that much of its time, in the order of the calls.
  void handle(double cost_ns, Action action) {
    waiting_.emplace_back(cost_ns, std::move(action));
    if (open_) release();
  }
  void open() {
    open_ = true;
    release();
  }
  void close() { open_ = false; }

 private:
  void release() {
    auto waiting = std::exchange(waiting_, {});
    for (auto& [cost_ns, action] : waiting) core_.urgent(cost_ns, std::move(action));
  }

  Core& core_;
  const uint32_t node_;
  const double crossing_efficiency_;
  bool open_ = false;
  std::vector<std::pair<double, Action>> waiting_;
};

}  // namespace offpath::model
