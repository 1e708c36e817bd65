// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/collective.hpp"

namespace offpath::mpi {

bool wants_offload(const Team& team, const Collective& collective, uint64_t bytes_per_peer) {
  if (job.policy().choose(collective.id, bytes_per_peer, team.nodes()) == policy::Path::dpu) return true;
  engine.counters().native_count.fetch_add(1, std::memory_order_relaxed);
  return false;
}

int prepare_sides(Operation& operation, const Team& team) {
  using Staging = Blocks::Staging;
  int code = operation.recv.prepare(Staging::if_needed);
  if (code == MPI_SUCCESS) code = operation.send.prepare(operation.in_place ? Staging::always : Staging::if_needed);
  if (code == MPI_SUCCESS && operation.send.staged()) code = operation.send.pack_into_staging(team.shadow());
  return code;
}

int restore_in_place(Operation& operation, MPI_Comm comm) {
  return operation.in_place ? operation.send.unpack_from_staging(comm) : MPI_SUCCESS;
}

}  // namespace offpath::mpi
