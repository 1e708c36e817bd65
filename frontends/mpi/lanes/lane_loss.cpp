// SPDX-License-Identifier: BSD-3-Clause
// A lane that has lost a service: it tells the other ranks, and ends its operations as all have agreed.
#include "mpi/job/job.hpp"
#include "mpi/lanes/lane.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"

namespace offpath::mpi {

void Lane::begin_cut() {
  if (phase_ != Phase::offloading) return;
  phase_ = Phase::cutting;
  broken_.store(true, std::memory_order_release);
  own_lost_ = offpath_session_alive(job.session()) == 0;
  if (own_lost_) job.report_lost_service();
  cut_.say(own_word(), Cut::Clock::now());
}

Word Lane::own_word() const {
  Word word;
  word.told = told_;
  word.own_lost = own_lost_ ? 1 : 0;
  if (!own_lost_) word.parting = service_->parting();
  return word;
}

// Where no rank has lost its own service, nobody else says why.
void Lane::report_loss() const {
  const Word& heard = cut_.heard();
  if (heard.own_lost == 0 && heard.parting) job.report_parting(heard.parting, rank_ == 0);
}

// A rank that has lost its service comes here when it has all words, and so do those that have only answered. So nobody's
// word finds the shadow gone. Whoever gives up sends another one: then the lane stays.
bool Lane::departed() {
  const bool all_said = phase_ == Phase::offloading || cut_.decided();
  if (!idle() || !adapter_->idle() || !all_said || cut_.given_up()) return false;
  if (!in_use()) return true;
  if (!departing_) departing_ = native.Ibarrier(shadow_, &departure_) == MPI_SUCCESS;
  int passed = 0;
  return departing_ && native.Test(&departure_, &passed, MPI_STATUS_IGNORE) == MPI_SUCCESS && passed != 0;
}

void Lane::check() {
  // Who leaves only answers: its own loss is nobody's.
  if (departing_) return respond();
  if (service_->broken() || offpath_session_alive(job.session()) == 0) begin_cut();
  respond();
}

void Lane::respond() {
  if (cut_.listen()) begin_cut();
}

void Lane::step_unfinished(PostedCall& operation) {
  operation.state = PostedState::unfinished;
  const bool done = operation.status == OFFPATH_OK;
  if (operation.status == OFFPATH_ERR_PEER_LOST && service_->lost_process()) {
    fail_lost(operation, Failure::peer_lost);
  } else if (phase_ == Phase::settled && (operation.call->pairwise || !cut_.told(operation.sequence))) {
    operation.state = PostedState::reissue;
  } else if (phase_ == Phase::settled || phase_ == Phase::dead) {
    if (done)
      finish_done(operation);
    else
      fail_lost(operation, phase_ == Phase::dead ? Failure::no_agreement : own_failure());
  }
}

// Nothing is at the service any more.
void Lane::reissue(PostedCall& operation) {
  if (!operation.call->pairwise) return end(operation, operation.reissue(shadow_));
  // Each block for itself. A rank that has told its program of the end, or counts as one, neither sends again nor takes.
  const bool counts_as_told = cut_.told_by(static_cast<uint32_t>(rank_), operation.sequence);
  const auto takes_part = [&](uint32_t peer) { return !counts_as_told && !cut_.told_by(peer, operation.sequence); };
  const bool is_here = operation.status == OFFPATH_OK;
  const bool is_complete = is_here || operation.call->recv.all_from(Share::service, takes_part);
  const int code = is_here ? operation.deliver(shadow_) : MPI_SUCCESS;
  operation.exchange_again(takes_part, shadow_);  // also where this rank's is an error: the others wait
  if (is_complete)
    end(operation, code);
  else
    fail_lost(operation, own_failure());
}

void Lane::fail_lost(PostedCall& operation, Failure failure) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (const MPI_Comm named = comm(); named != MPI_COMM_NULL) native.Comm_get_name(named, name, &length);
  const char* collective = policy::collective_name(operation.call->collective->id);
  end(operation, offloader.errors().lost(failure, collective, operation.sequence, name));
}

}  // namespace offpath::mpi
