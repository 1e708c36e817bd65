// SPDX-License-Identifier: BSD-3-Clause
// A lane that has lost a service: it tells the other ranks, and ends its operations as all have agreed.
#include "mpi/job/job.hpp"
#include "mpi/lanes/lane.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <utility>

namespace offpath::mpi {

bool Lane::is_broken() const {
  if (service_->broken()) return true;
  return !past_is_over() && past_->service->broken() && past_->service->lost_process();
}

void Lane::begin_cut() {
  if (phase_ != Phase::offloading) return;
  const uint64_t next = std::min(next_sequence_, turning_point());  // what is held back has not begun anywhere
  phase_ = Phase::cutting;
  broken_.store(true, std::memory_order_release);
  own_lost_ = !service_->alive();
  if (own_lost_) job.report_lost_service();
  process_lost_since_ = Cut::Clock::now();
  if (native.tells_of_losses() && service_->lost_process()) return;
  turn_->cut.say(own_word(next), process_lost_since_);
}

void Lane::die(Failure why) {
  if (phase_ == Phase::dead) return;
  report_parting(Job::kAllNative);
  failure_ = why;
  phase_ = Phase::dead;
  broken_.store(true, std::memory_order_release);
  stop_turning();
  if (!is_told_of_lost()) return;
  service_->give_up();
  revoke();
}

int Lane::failure_code() const { return offloader.errors().code_of(failure_); }

void Lane::revoke() {
  native.Comm_revoke(shadow_);
  if (adapter_->council() != MPI_COMM_NULL) native.Comm_revoke(adapter_->council());
}

int Lane::error_of(int code) {
  if (code == MPI_SUCCESS) return code;
  hear_library(code);
  return Errors::told_by(code) && phase_ == Phase::dead ? failure_code() : code;
}

// `code`: what became of a call on the shadow, which others revoke when their lane is dead.
void Lane::hear_library(int code) {
  std::optional<Failure> told = Errors::told_by(code);
  if (told == Failure::revoked) {
    int revoked = 0;
    if (const MPI_Comm comm = this->comm(); comm != MPI_COMM_NULL) native.is_revoked(comm, &revoked);
    if (revoked == 0) told = Failure::process_lost;
  }
  const bool is_late = awaits_library() && Cut::Clock::now() - process_lost_since_ > job.settings().loss_timeout;
  if (told || is_late) die(told.value_or(Failure::process_lost));
}

void Lane::respond(bool looks_for_turns) {
  if (!past_is_over()) look_back();
  Cut& cut = turn_->cut;
  const int code = cut.listen();
  if (code != MPI_SUCCESS || awaits_library()) hear_library(code);
  if (cut.begun()) begin_cut();
  if (phase_ == Phase::cutting) {
    if (shares_ > 0 && cut.late(Cut::Clock::now(), job.settings().loss_timeout)) cut.give_up();
    if (cut.decided()) phase_ = Phase::settled;
  }
  if (cut.given_up() || (past_ != nullptr && past_->turn->cut.given_up())) die(Failure::no_agreement);
  if (is_agreed() || looks_for_turns || turn_->said_ready || turn_->begun()) {
    turn_->comeback.listen();
    hear_ready();  // after that: what was said before it is here
  }
  if (phase_ == Phase::settled || phase_ == Phase::offloading) come_back();
}

Word Lane::own_word(uint64_t next) const {
  Word word;
  word.told = told_;
  word.next = next;
  word.own_lost = own_lost_ ? 1 : 0;
  if (!own_lost_) word.parting = service_->parting();
  return word;
}

// Where no rank has lost its own service, nobody else says why.
void Lane::report_parting(const char* meaning) const {
  const Word& heard = turn_->cut.heard();
  if (heard.own_lost == 0 && heard.parting) job.report_parting(heard.parting, rank_ == 0, meaning);
}

// Whoever comes here has all words, of those that have lost their service, and of those that have only answered. So nobody's
// word finds the shadow gone, also of a lane that was never used, as another one's service may leave. Whoever gives up sends another one: then the lane stays.
bool Lane::departed() {
  const Comeback& comeback = turn_->comeback;
  const bool all_said =
      past_is_over() && (phase_ == Phase::offloading ? !turn_->said_ready && !turn_->begun() : comeback.decided());
  if (phase_ == Phase::dead && is_told_of_lost()) return idle() && adapter_->idle();  // nobody says anything
  if (!idle() || !adapter_->idle() || !all_said || turn_->cut.given_up()) return false;
  if (!departing_) departing_ = native.Ibarrier(shadow_, &departure_) == MPI_SUCCESS;
  int passed = 0;
  return departing_ && native.Test(&departure_, &passed, MPI_STATUS_IGNORE) == MPI_SUCCESS && passed != 0;
}

void Lane::check() {
  // Who leaves only answers: its own loss is nobody's.
  if (!departing_) {
    if (is_broken() || !service_->alive()) begin_cut();
    leave();
  }
  respond();
}

void Lane::step_unfinished(PostedCall& operation) {
  operation.state = PostedState::unfinished;
  const bool done = operation.status == OFFPATH_OK;
  if (operation.status == OFFPATH_ERR_PEER_LOST && !native.tells_of_losses() && service_->lost_process()) {
    fail_lost(operation, Failure::process_lost);
  } else if (is_agreed() && (operation.call->pairwise || !turn_->cut.told(operation.sequence))) {
    operation.state = PostedState::reissue;
  } else if (is_agreed() || phase_ == Phase::dead) {
    if (done)
      finish_done(operation);
    else
      fail_lost(operation, phase_ == Phase::dead ? failure_.load() : own_failure());
  }
}

// Nothing is at the service any more.
void Lane::reissue(PostedCall& operation) {
  if (!operation.call->pairwise) return end(operation, operation.reissue(shadow_));
  // Each block for itself. A rank that has told its program of the end, or counts as one, neither sends again nor takes.
  const bool counts_as_told = turn_->cut.told_by(static_cast<uint32_t>(rank_), operation.sequence);
  const auto takes_part = [&](uint32_t peer) {
    return !counts_as_told && !turn_->cut.told_by(peer, operation.sequence);
  };
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
