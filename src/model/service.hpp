// SPDX-License-Identifier: BSD-3-Clause
// Simulated services: the engine (engine/) of a worker on each node, in virtual time. Its fabric is the simulated
// network, its clients' memory is not there, and all that it does is charged to its core.
#pragma once

#include "model/job.hpp"
#include "model/virtual_fabric.hpp"

#include <memory>

namespace offpath::model {

class Services {
 public:
  // A member has ended its part of an operation; of a one-sided one the origin.
  using OnDone = std::function<void(uint32_t operation, uint32_t member)>;
  // `cores`: by number. All that is given must outlive it.
  Services(Events& events, Network& network, const Job& job, const std::vector<std::unique_ptr<Core>>& cores,
           OnDone on_done);
  ~Services();
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  // That member's worker has learnt that it has posted the operation; of a one-sided one the origin, which is 0.
  base::Status post(uint32_t number, const Operation& operation, uint32_t member);
  double spent_ns(uint32_t node) const;
  // Something ended that should not have: the model is wrong.
  const base::Status& problem() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace offpath::model
