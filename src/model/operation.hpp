// SPDX-License-Identifier: BSD-3-Clause
// An operation as profiles and scenarios name it, and its graph for one member: on the DPU by the very expansions that
// the service runs (ops/), on the host by what the MPI library is known to do. Pure.
#pragma once

#include "base/result.hpp"
#include "model/machine.hpp"
#include "ops/collectives/collective.hpp"
#include "policy/policy.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace offpath::model {

enum class Remote : uint8_t { none, put, get, message };

struct Operation {
  policy::Collective kind = policy::Collective::ialltoall;
  Remote remote = Remote::
      none;  // one-sided: the members are origin and target, `kind` means nothing; of a message sender and receiver
  bool reduces = false;  // one-sided: an accumulate
  policy::Path path = policy::Path::host;
  offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT;
  uint32_t root = 0;
  uint64_t bytes = 0;             // as policy::Table::choose means it, also where irregular: of the largest member
  std::vector<uint32_t> members;  // ranks of the job
  std::vector<std::vector<uint64_t>> sent_bytes;  // by member and peer; empty: alike
};

// Its target posts nothing.
inline bool is_one_sided(const Operation& operation) {
  return operation.remote == Remote::put || operation.remote == Remote::get;
}

// The name is that of the policy, or put, get, accumulate, fetch.
base::Status set_kind(Operation& operation, const std::string& name);

// What the DPU runs of a collective. `copy_own`: the service copies own blocks itself.
base::Result<graph::Graph> service_graph(const Operation& operation, const ops::Topology& topology, bool copy_own);

// What the MPI library does: rounds, each of which waits for all of the one before.
graph::Graph native_graph(const Operation& operation, const ops::Topology& topology, const Native& native);

// Whether each sends to one after the other, as MPICH does with long blocks that are alike, or to all at once.
bool is_pairwise(const Operation& operation, uint32_t size, const Native& native);

// Bytes that `from` sends to `to`, for the kinds that are an exchange of blocks.
uint64_t exchanged_bytes(const Operation& operation, uint32_t from, uint32_t to, uint32_t size);
bool is_exchange(policy::Collective kind);
// Of its block for itself, which is only copied.
uint64_t own_bytes(const Operation& operation, uint32_t member);

}  // namespace offpath::model
