// SPDX-License-Identifier: BSD-3-Clause
// What every offloaded collective's handler does: find the team, ask the policy, prepare, submit. A new collective is a
// file like ialltoall.cpp: a handler, how to post and how to reissue, one Collective row; and its line in
// functions.def.
#pragma once

#include "engine.hpp"
#include "job.hpp"
#include "native.hpp"
#include "waiting.hpp"

#include <exception>
#include <memory>

namespace offpath::mpi {

// The team of `comm`, or nullptr: the call is native.
inline Team* team_of(MPI_Comm comm) {
  if (!job.active() || Inside::here()) return nullptr;
  return engine.find_team(comm);
}

// True if the policy wants the operation at the service. Counts it as native otherwise.
bool wants_offload(const Team& team, const Collective& collective, uint64_t bytes_per_peer);

// Readies both sides, already set, for the service. MPI error code.
int prepare_sides(Operation& operation, const Team& team);
// Before an operation in place is done again: puts back what was in the receive buffer. MPI error code.
int restore_in_place(Operation& operation, MPI_Comm comm);

// Submits what `set` (Operation& -> nothing) describes; `issue` (MPI_Comm -> MPI error code) is the native call
// on another communicator. Returns what the MPI function returns; errors went to the communicator's handler.
int submit_collective(Team& team, MPI_Comm comm, const Collective& collective, MPI_Request* request, auto&& set,
                      auto&& issue) {
  int code = MPI_SUCCESS;
  Team::Route route = engine.route(team);
  if (route == Team::Route::service) {
    const uint64_t begin = now_ns();
    try {
      auto operation = std::make_unique<Operation>(collective);
      {
        const Inside inside;
        set(*operation);
        code = prepare_sides(*operation, team);
      }
      if (code != MPI_SUCCESS) return raise_error(comm, code);
      route = engine.submit(team, std::move(operation), request, &code);
    } catch (const std::exception&) {
      return raise_error(comm, MPI_ERR_NO_MEM);
    }
    engine.counters().post_ns.fetch_add(now_ns() - begin, std::memory_order_relaxed);
  }
  if (route == Team::Route::service) return MPI_SUCCESS;
  engine.counters().native_count.fetch_add(1, std::memory_order_relaxed);
  if (route == Team::Route::shadow)
    code = issue(team.shadow());
  else if (code == MPI_SUCCESS)
    code = engine.errors().code_for(OFFPATH_ERR_SERVICE_LOST);
  return code == MPI_SUCCESS ? code : raise_error(comm, code);
}

}  // namespace offpath::mpi
