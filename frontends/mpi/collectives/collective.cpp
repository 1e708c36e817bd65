// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/collective.hpp"

namespace offpath::mpi {

bool wants_offload(const Team& team, const Collective& collective, uint64_t bytes_per_peer) {
  if (job.policy().choose(collective.id, bytes_per_peer, team.nodes()) == policy::Path::dpu) return true;
  engine.counters().native_count.fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace offpath::mpi
