// SPDX-License-Identifier: BSD-3-Clause
// Processor time of a simulated worker: charged by whoever does something for it, spent on its core in that order.
#pragma once

#include "model/core.hpp"

#include <utility>

namespace offpath::model {

class Account {
 public:
  // `speed`: how much faster than a host core the worker does its work.
  Account(Core& core, double speed) : core_(core), speed_(speed) {}
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  void charge(double cost_ns) {
    owed_ns_ += cost_ns / speed_;
    spent_ns_ += cost_ns / speed_;
  }
  // When all that has been charged is spent.
  void then(Action action) { core_.urgent(std::exchange(owed_ns_, 0), std::move(action)); }
  double spent_ns() const { return spent_ns_; }

 private:
  Core& core_;
  const double speed_;
  double owed_ns_ = 0;
  double spent_ns_ = 0;
};

}  // namespace offpath::model
