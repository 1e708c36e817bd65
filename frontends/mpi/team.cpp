// SPDX-License-Identifier: BSD-3-Clause
#include "team.hpp"

#include "engine.hpp"
#include "job.hpp"
#include "native.hpp"

#include <algorithm>

namespace offpath::mpi {
namespace {

// How often the service may refuse an operation for want of memory while nothing is under way that could free some.
constexpr uint32_t kMaxRefusedPosts = 10000;

bool lost_status(offpath_status_t status) {
  return status == OFFPATH_ERR_NOT_STARTED || status == OFFPATH_ERR_SERVICE_LOST || status == OFFPATH_ERR_PEER_LOST;
}

}  // namespace

Team::Team(CommCell comm, MPI_Comm shadow, offpath_team_t* handle, int rank, int size,
           std::unique_ptr<Neighborhood> neighborhood)
    : comm_(std::move(comm)),
      shadow_(shadow),
      handle_(handle),
      rank_(rank),
      size_(size),
      nodes_(offpath_team_nodes(handle)),
      neighborhood_(std::move(neighborhood)),
      cut_(shadow, rank, size) {}

Team::~Team() {
  offpath_team_destroy(handle_);
  if (shadow_ != MPI_COMM_NULL) native.Comm_free(&shadow_);
}

Team::Route Team::route() const {
  if (phase_ == Phase::dead) return Route::error;
  if (phase_ != Phase::settled) return Route::service;
  // Collectives on one communicator must be issued in the same order everywhere: wait behind what is not issued yet.
  for (const Operation* operation : operations_) {
    if (operation->state != OperationState::reissued) return Route::service;
  }
  return Route::shadow;
}

void Team::add(Operation* operation) {
  operations_.push_back(operation);  // may throw; nothing has happened yet
  operation->team = this;
  operation->sequence = next_sequence_++;
  bool first_unposted = phase_ == Phase::offloading;
  for (size_t i = 0; first_unposted && i + 1 < operations_.size(); ++i) {
    first_unposted = operations_[i]->state != OperationState::queued;
  }
  if (first_unposted) try_post(*operation);
}

void Team::try_post(Operation& operation) {
  const offpath_status_t status = operation.post(handle_);
  if (status == OFFPATH_OK) {
    operation.state = OperationState::posted;
    refused_posts_ = 0;
    engine.count_posted(operation);
    return;
  }
  if (status == OFFPATH_ERR_NO_MEMORY && (engine.posted_count() > 0 || ++refused_posts_ < kMaxRefusedPosts)) return;
  if (lost_status(status) || offpath_session_alive(job.session()) == 0) {
    operation.status = OFFPATH_ERR_NOT_STARTED;
    operation.state = OperationState::unfinished;
    begin_cut();
    return;
  }
  engine.finish(operation, engine.errors().code_for(status));
}

void Team::begin_cut() {
  if (phase_ != Phase::offloading) return;
  phase_ = Phase::cutting;
  own_lost_ = offpath_session_alive(job.session()) == 0;
  Word word;
  word.begun = completed_through_;
  if (own_lost_) {
    word.begun = std::max(word.begun, offpath_team_started(handle_));
    job.report_lost_service();
  }
  cut_.say(word, Cut::Clock::now());
}

void Team::check() {
  if (offpath_team_broken(handle_) != 0 || offpath_session_alive(job.session()) == 0) begin_cut();
  respond();
}

void Team::respond() {
  if (cut_.listen()) begin_cut();
}

void Team::advance() {
  // Listening also keeps native progress going for everybody else's sake.
  const bool heard = cut_.listen();
  if (phase_ == Phase::offloading && (heard || offpath_team_broken(handle_) != 0)) begin_cut();
  if (phase_ == Phase::cutting) {
    if (cut_.late(Cut::Clock::now(), job.settings().loss_timeout)) cut_.give_up();
    if (cut_.decided()) phase_ = Phase::settled;
  }
  if (cut_.given_up()) phase_ = Phase::dead;
  may_issue_ = true;
  for (Operation* operation : operations_) step(*operation);
  for (auto next = operations_.begin(); next != operations_.end();) {
    if ((*next)->state != OperationState::finished) {
      ++next;
      continue;
    }
    engine.complete(**next);
    next = operations_.erase(next);
  }
}

void Team::step(Operation& operation) {
  switch (operation.state) {
    case OperationState::queued:
      if (phase_ == Phase::offloading && may_issue_) try_post(operation);
      if (phase_ == Phase::settled || phase_ == Phase::dead) {
        operation.status = OFFPATH_ERR_NOT_STARTED;
        step_unfinished(operation);
      }
      break;
    case OperationState::posted:
      step_posted(operation);
      break;
    case OperationState::unfinished:
      step_unfinished(operation);
      break;
    case OperationState::reissued: {
      int done = 0;
      const int code = native.Test(&operation.native_request, &done, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS || done != 0) engine.finish(operation, code);
      break;
    }
    case OperationState::reissue:
    case OperationState::finished:
      break;
  }
  if (operation.state == OperationState::reissue) {
    if (phase_ == Phase::dead) {
      fail_lost(operation, Failure::no_agreement);
    } else if (may_issue_) {
      const int code = operation.reissue(shadow_);
      if (code == MPI_SUCCESS)
        operation.state = OperationState::reissued;
      else
        engine.finish(operation, code);
    }
  }
  const bool issued = operation.state == OperationState::reissued || operation.state == OperationState::finished;
  const bool at_service = phase_ == Phase::offloading && operation.state == OperationState::posted;
  // Operations below the cut are never issued natively and hold nobody up.
  const bool below_cut = phase_ == Phase::settled && operation.sequence < cut_.cut();
  if (!issued && !at_service && !below_cut) may_issue_ = false;
}

void Team::step_posted(Operation& operation) {
  // Helping (copying the own block) is due whenever the application tests or waits: nobody else may do it.
  const offpath_status_t status = offpath_op_help(operation.op);
  if (status == OFFPATH_OK && phase_ == Phase::offloading) {
    finish_done(operation);
  } else if (status == OFFPATH_OK) {
    // Too late to count for the cut: whether it stands is up to the others.
    operation.status = OFFPATH_OK;
    step_unfinished(operation);
  } else if (lost_status(status)) {
    operation.status = status;
    operation.state = OperationState::unfinished;
    begin_cut();
    step_unfinished(operation);
  } else if (status != OFFPATH_IN_PROGRESS) {
    engine.finish(operation, engine.errors().code_for(status));
  } else if (phase_ == Phase::dead) {
    fail_lost(operation, Failure::no_agreement);
  }
}

void Team::finish_done(Operation& operation) {
  const int code = operation.deliver(shadow_);
  completed_through_ = std::max(completed_through_, operation.sequence + 1);
  engine.finish(operation, code);
}

void Team::step_unfinished(Operation& operation) {
  operation.state = OperationState::unfinished;
  const bool done = operation.status == OFFPATH_OK;
  if (operation.status == OFFPATH_ERR_PEER_LOST) {
    fail_lost(operation, Failure::peer_lost);
  } else if (operation.sequence < cut_.own().begun || (phase_ == Phase::settled && operation.sequence < cut_.cut())) {
    if (done)
      finish_done(operation);
    else
      fail_lost(operation, own_lost_ ? Failure::service_lost : Failure::peer_lost);
  } else if (phase_ == Phase::settled) {
    operation.state = OperationState::reissue;
  } else if (phase_ == Phase::dead) {
    if (done)
      finish_done(operation);
    else
      fail_lost(operation, Failure::no_agreement);
  }
}

void Team::fail_lost(Operation& operation, Failure failure) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (const MPI_Comm named = comm(); named != MPI_COMM_NULL) native.Comm_get_name(named, name, &length);
  const char* collective = policy::collective_name(operation.call->collective->id);
  engine.finish(operation, engine.errors().lost(failure, collective, operation.sequence, name));
}

}  // namespace offpath::mpi
