// SPDX-License-Identifier: BSD-3-Clause
// One offloaded collective of this rank, from the call (or the start of a persistent one) to the end of its MPI
// request. It has a share at the service, unless it is pairwise and has no block for it here, and native requests: the
// messages of its other blocks from the beginning, and what had to be issued again after a loss. It ends with the last.
//
// States (of the service's share; only under the offloader's lock):
//   deferred   its path, or that of one before it, is not decided yet (adapt/adapter.hpp); it has no sequence
//   queued     not handed to the service yet (no slot free, or the lane is agreeing on a cut)
//   posted     at the service
//   unfinished came back from a lost service; what becomes of it depends on the cut
//   reissue    waits for its turn to be issued natively
//   ended      nothing is at the service, or will be; native requests may be under way
//   finished   terminal; `finished` and `error` may be read without the lock
// The lane owns it until finished, and its request does (requested.hpp).
#pragma once

#include "mpi/calls/call.hpp"
#include "mpi/calls/staging.hpp"
#include "mpi/lanes/requested.hpp"
#include "mpi/native/native_requests.hpp"
#include "mpi/recording/decision.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstdint>
#include <memory>

namespace offpath::mpi {

class Lane;

enum class PostedState : uint8_t { deferred, queued, posted, unfinished, reissue, ended, finished };

struct PostedCall : Generalized {
  explicit PostedCall(std::shared_ptr<const Call> what) : call(std::move(what)), algorithm(call->algorithm) {}

  int raise(int code) const override;
  // Takes staging memory and packs what is to be sent. MPI error code; `comm` returns errors. May throw bad_alloc.
  int prepare(MPI_Comm comm);
  // Starts the messages of the host share. Once it has its sequence.
  void start_messages(MPI_Comm comm) { exchange(Share::host, comm); }
  // Hands it to the service. May throw bad_alloc.
  offpath_status_t post(offpath_team_t* handle);
  // Puts what arrived where it belongs. MPI error code.
  int deliver(MPI_Comm comm);
  // Issues it natively.
  void issue(MPI_Comm comm);
  // Issues the service's share natively after all. Not pairwise. MPI error code.
  int reissue(MPI_Comm comm);
  // Pairwise: the service's share with those ranks.
  void exchange_again(const Chosen& peers, MPI_Comm comm) { exchange(Share::service, comm, peers); }
  // Leaves staging memory to the service, which may still use it.
  void abandon_staging();
  // Lets go of what only an unfinished operation needs, `call` too; then no native call is needed to delete it.
  void release();

  // Still in this process's hands: nothing is under way, and other ranks may wait for it.
  bool held_back() const { return state < PostedState::ended && state != PostedState::posted; }

  std::shared_ptr<const Call> call;
  offpath_algorithm_t algorithm;
  std::optional<Ask> open;  // deferred: to be decided
  Staging send_staging;
  Staging recv_staging;

  Lane* lane = nullptr;
  uint64_t sequence = 0;
  PostedState state = PostedState::queued;
  offpath_status_t status = OFFPATH_IN_PROGRESS;
  offpath_op_t* op = nullptr;
  NativeRequests natives;
  bool never_served = false;  // native by decision
  uint64_t recorded = recording::decision.operation;

 private:
  void exchange(Share share, MPI_Comm comm, const Chosen& peers = all_peers);
};

}  // namespace offpath::mpi
