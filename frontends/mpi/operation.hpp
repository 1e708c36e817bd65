// SPDX-License-Identifier: BSD-3-Clause
// One offloaded collective of this rank, from the call to the end of its MPI request.
//
// States (of the team's side; only under the engine's lock):
//   queued     not handed to the service yet (no slot free, or the team is agreeing on a cut)
//   posted     at the service
//   unfinished came back from a lost service; what becomes of it depends on the cut
//   reissue    waits for its turn to be issued natively
//   reissued   issued natively on the shadow communicator
//   finished   terminal; `finished` and `error` may be read without the lock
// Two owners: the team until finished, the MPI request until its free callback. The last one deletes.
#pragma once

#include "blocks.hpp"
#include "policy/policy.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>

namespace offpath::mpi {

class Team;
struct Operation;

// A collective that can be offloaded: how it is handed to the service and how it is issued natively instead.
struct Collective {
  policy::Collective id;
  offpath_status_t (*post)(Operation& operation, offpath_team_t* team);
  int (*reissue)(Operation& operation, MPI_Comm comm, MPI_Request* request);
};

enum class OperationState : uint8_t { queued, posted, unfinished, reissue, reissued, finished };

struct Operation {
  explicit Operation(const Collective& kind) : collective(&kind) {}

  const Collective* collective;
  bool in_place = false;
  Blocks send;  // in place: what was in the receive buffer, always staged, so that the operation can be done again
  Blocks recv;

  Team* team = nullptr;
  uint64_t sequence = 0;
  OperationState state = OperationState::queued;
  offpath_status_t status = OFFPATH_IN_PROGRESS;
  offpath_op_t* op = nullptr;
  MPI_Request native_request = MPI_REQUEST_NULL;

  MPI_Request request = MPI_REQUEST_NULL;  // the application's handle
  std::atomic<bool> finished{false};
  int error = MPI_SUCCESS;  // valid once finished
  std::atomic<int> owners{2};
};

}  // namespace offpath::mpi
