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
#include <optional>
#include <set>
#include <vector>

namespace engine_bench {

// What an operation of all took, and what all services said of it, also after its end.
struct Spent {
  double ns = 0;                     // of virtual time, until the last member's end
  uint64_t messages = 0, bytes = 0;  // on the wire, of all services
  uint64_t most_messages = 0;        // sent by one of them
  uint64_t parts = 0;                // steps and exports of the largest graph
  uint64_t events = 0;               // of the simulation
};

// What became of a member, where services may die.
struct Fate {
  std::optional<offpath_status_t> status;  // of its last operation; none: it has not ended
  std::set<uint32_t> lost;                 // other members, as it was told
  double told_ns = 0;                      // of the last one of these
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
  // The same, which each joins with its first operation.
  void expect_team();
  // All post it at once. `ends`: as the MPI front end asks for it.
  offpath::base::Result<Spent> run(offpath::model::Operation operation, offpath::graph::Ends ends);
  // The same where services may die. `begins_ns`: by member, when it posts the operation; `deaths`: who dies, and when; from now on.
  // Returns when nothing happens any more. Before the first team, be_mortal().
  struct Death {
    uint32_t service;
    double ns;
  };
  void be_mortal();
  offpath::base::Result<Spent> run(const offpath::model::Operation& operation, offpath::graph::Ends ends,
                                   const std::vector<double>& begins_ns, const std::vector<Death>& deaths);
  const Fate& fate(uint32_t member) const;
  size_t connections(uint32_t member) const;
  double now_ns() const;
  // Bytes that this process has allocated now, without the buffers for chunks, whose number is bounded. Of one thread.
  static uint64_t allocated_bytes();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace engine_bench
