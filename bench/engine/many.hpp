// SPDX-License-Identifier: BSD-3-Clause
// Many services in virtual time, with one client each: the engines that run in offpathd, with the planner's memory and doer (model/).
// The wire costs the same for each message however many nodes there are: each has a link up and one down, on which messages follow
// each other. All that happens follows from the numbers given, so it is the same each time, on any machine.
#pragma once

#include "base/result.hpp"
#include "graph/graph.hpp"
#include "model/machine.hpp"
#include "model/operation.hpp"

#include <cstdint>
#include <memory>

namespace engine_bench {

// What an operation of all took, and what all services said of it, also after its end.
struct Spent {
  double ns = 0;                     // of virtual time, until the last member's end
  uint64_t messages = 0, bytes = 0;  // on the wire, of all services
  uint64_t most_messages = 0;        // sent by one of them
  uint64_t parts = 0;                // steps and exports of the largest graph
  uint64_t events = 0;               // of the simulation
};

class Many {
 public:
  explicit Many(uint32_t services, const offpath::model::Machine& machine = default_machine());
  ~Many();
  Many(const Many&) = delete;
  Many& operator=(const Many&) = delete;
  // A link of 100 Gbit/s and two microseconds, and services with a core of their own.
  static offpath::model::Machine default_machine();

  // A communicator of all, for what follows.
  offpath::base::Status add_team();
  // All post it at once. `ends`: as the MPI front end asks for it.
  offpath::base::Result<Spent> run(offpath::model::Operation operation, offpath::graph::Ends ends);
  // Bytes that this process has allocated now, without the buffers for chunks, whose number is bounded. Of one thread.
  static uint64_t allocated_bytes();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace engine_bench
