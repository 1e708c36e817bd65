// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose times can be worked out by hand.
#pragma once

#include "model/job.hpp"

#include <gtest/gtest.h>

namespace offpath::model {

using policy::Collective;
using policy::Path;

inline constexpr double kMiB = 1 << 20;

// Processors cost nothing, so times are those of the wire.
inline Machine wire_only(double rate = 0.125, double latency_ns = 1000) {
  Machine m;
  m.rate_bytes_per_ns = rate;
  m.latency_ns = latency_ns;
  m.wire_efficiency = 1;
  m.header_bytes = 0;
  m.copy_bytes_per_ns = m.cma_bytes_per_ns = m.reduce_bytes_per_ns = 1e9;
  m.native = {"openmpi", 65536, 131072, 1e9, 0, 0, 0, 0};
  m.service = {true, 1, 57344, 1e9, 0, 0, 0, 0, 0, 0, 0, 0};
  return m;
}

inline Job job_of(const Machine& machine, uint32_t nodes, uint32_t ppn = 1) {
  Job job;
  job.machine = machine;
  job.nodes = nodes;
  for (uint32_t rank = 0; rank < nodes * ppn; ++rank) {
    job.node_of.push_back(rank / ppn);
    job.rank_core.push_back(rank);
  }
  for (uint32_t node = 0; node < nodes; ++node) {
    job.service_core.push_back(machine.service.own_cores ? nodes * ppn + node : node * ppn);
  }
  job.ranks.resize(nodes * ppn);
  return job;
}

inline Operation operation_of(const Job& job, Collective kind, uint64_t bytes, Path path,
                              offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT) {
  Operation operation;
  operation.kind = kind;
  operation.bytes = bytes;
  operation.path = path;
  operation.algorithm = algorithm;
  for (uint32_t rank = 0; rank < job.ranks.size(); ++rank) operation.members.push_back(rank);
  return operation;
}

// All ranks post it, compute and wait.
inline double time_of(Job job, const Operation& operation, double compute_ns = 0) {
  job.operations = {operation};
  for (auto& acts : job.ranks) {
    acts = {{Act::Kind::post, 0, {0}}, {Act::Kind::compute, compute_ns, {}}, {Act::Kind::wait, 0, {0}}};
  }
  auto outcome = simulate(job);
  EXPECT_TRUE(outcome.ok()) << outcome.status().text();
  return outcome.ok() ? outcome->end_ns : 0;
}

inline double time_of(const Machine& machine, uint32_t nodes, Collective kind, uint64_t bytes, Path path,
                      double compute_ns = 0, offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT) {
  const Job job = job_of(machine, nodes);
  return time_of(job, operation_of(job, kind, bytes, path, algorithm), compute_ns);
}

}  // namespace offpath::model
