// SPDX-License-Identifier: BSD-3-Clause
// Whoever moves messages: a service's worker, which always may and sleeps when there is nothing to do, or the MPI
// library inside a rank, which may only while the rank is in one of its calls. What comes meanwhile waits.
#pragma once

#include "model/core.hpp"
#include "model/network.hpp"

#include <utility>
#include <vector>

namespace offpath::model {

class Agent {
 public:
  // `speed`: how much faster than a host core it does its work. `wake_ns`: what a sleeping worker takes to run.
  Agent(Events& events, Core& core, uint32_t node, double speed, double wake_ns, bool open, double crossing_efficiency)
      : events_(events),
        core_(core),
        node_(node),
        speed_(speed),
        wake_ns_(wake_ns),
        crossing_efficiency_(crossing_efficiency),
        open_(open) {}

  uint32_t node() const { return node_; }
  double spent_ns() const { return spent_ns_; }
  Route route_to(const Agent& other) const { return {node_, other.node_, crossing_efficiency_}; }

  // Does `action` after that much of its time, in the order of the calls.
  void handle(double cost_ns, Action action) {
    waiting_.emplace_back(cost_ns, std::move(action));
    if (!open_ || waking_) return;
    if (wake_ns_ == 0 || running_ > 0) return release();
    waking_ = true;
    events_.after(wake_ns_, [this] {
      waking_ = false;
      release();
    });
  }
  void open() {
    open_ = true;
    release();
  }
  void close() { open_ = false; }

 private:
  void release() {
    auto waiting = std::exchange(waiting_, {});
    for (auto& [cost_ns, action] : waiting) {
      ++running_;
      spent_ns_ += cost_ns / speed_;
      core_.urgent(cost_ns / speed_, [this, act = std::move(action)] {
        act();
        --running_;
      });
    }
  }

  Events& events_;
  Core& core_;
  const uint32_t node_;
  const double speed_, wake_ns_, crossing_efficiency_;
  bool open_, waking_ = false;
  uint64_t running_ = 0;
  double spent_ns_ = 0;
  std::vector<std::pair<double, Action>> waiting_;
};

}  // namespace offpath::model
