// SPDX-License-Identifier: BSD-3-Clause
// A job to be simulated: what each rank does, in order, on which machine; and what came of it.
#pragma once

#include "model/machine.hpp"
#include "model/operation.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace offpath::model {

struct Act {
  enum class Kind : uint8_t {
    compute,  // for_ns of work on the rank's core
    idle,     // for_ns outside of MPI without the core: what the model leaves as it was
    post,     // `operations`
    wait,     // for all of `operations`
    test,     // a call of MPI that looks after communication and returns
    sync,     // all ranks meet; costs nothing
    draw,     // sections of `queue` until none is left; costs nothing
  };
  Kind kind = Kind::compute;
  double for_ns = 0;
  std::vector<uint32_t> operations = {};
  uint32_t queue = 0;
};

struct Job {
  Machine machine;
  uint32_t nodes = 1;
  std::vector<uint32_t> node_of;       // by rank
  std::vector<uint32_t> rank_core;     // by rank: core of the machine
  std::vector<uint32_t> service_core;  // by node; may be a rank's
  std::vector<Operation> operations;
  std::vector<std::vector<Act>> ranks;
  // Work that may change hands: its one-sided operations are those of the rank that draws it. Not empty, no draw in it;
  // in one queue at most.
  std::vector<std::vector<Act>> sections;
  std::vector<std::vector<uint32_t>> queues;  // sections in the order in which they are drawn
};

struct Outcome {
  std::vector<std::vector<double>> act_end_ns;  // by rank and act done; those of sections before their draw
  std::vector<std::vector<uint32_t>> drawn;     // by rank: sections
  std::vector<std::vector<double>> done_ns;     // by operation and member
  std::vector<double> service_ns;               // by node: processor time of the service
  double core_ns = 0;                           // processor time of everybody: what is done, no waiting
  double end_ns = 0;
  uint64_t events = 0;
};

// Runs the job to its end. Fails where ranks wait for what never comes. Pure; takes about a microsecond per event.
base::Result<Outcome> simulate(const Job& job);

}  // namespace offpath::model
