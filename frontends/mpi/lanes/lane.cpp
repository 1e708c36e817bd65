// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/lane.hpp"

#include "client/kept.hpp"
#include "mpi/job/counters.hpp"
#include "mpi/job/job.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <exception>

namespace offpath::mpi {
namespace {

// How often the service may refuse an operation for want of memory while nothing is under way that could free some.
constexpr uint32_t kMaxRefusedPosts = 10000;
// Of how many rounds one looks for words where nothing is at the service, and messages of operations need all speed.
constexpr uint32_t kRoundsPerLook = 16;

}  // namespace

Lane::Lane(CommCell comm, Assembly parts, uint32_t nodes, Preference preference)
    : comm_(std::move(comm)),
      service_(std::move(parts.service)),
      rank_(parts.rank),
      size_(parts.size),
      nodes_(nodes),
      neighborhood_(std::move(parts.neighborhood)),
      adapter_(std::make_unique<Adapter>(rank_, nodes_, comm_, broken_, preference)),
      turn_(std::make_unique<Turn>(Seat{shadow_, rank_, size_}, turns_)) {}

void Lane::begin(MPI_Comm shadow, MPI_Comm council) {
  shadow_ = shadow;
  turn_->sit(shadow);
  adapter_->sit(council);
}

Lane::~Lane() {
  stop_turning();
  service_.reset();
  if (shadow_ != MPI_COMM_NULL) native.Comm_free(&shadow_);
}

int Lane::raise(int code) const {
  const MPI_Comm comm = this->comm();
  return raise_error(comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm, code);
}

Lane::Route Lane::route(const Call& call) {
  // The messages of what goes pairwise are started whatever becomes of the service: the other ends wait for them.
  if (call.pairwise || phase_ == Phase::offloading || phase_ == Phase::cutting) return Route::lane;
  if (phase_ == Phase::settled) return Route::lane;
  // What another rank has told its program of cannot be done without it.
  if (phase_ == Phase::host && (turn_->cut.told(next_sequence_) || !nothing_holds_up())) return Route::lane;
  ++next_sequence_;
  return phase_ == Phase::dead ? Route::error : Route::shadow;
}

bool Lane::holds_up(const PostedCall& operation) const {
  if (operation.state >= PostedState::ended || operation.state == PostedState::deferred) return false;
  if (phase_ == Phase::offloading) return operation.state != PostedState::posted;
  return !is_agreed() || !turn_->cut.told(operation.sequence);  // what somebody has told is done again by none
}

bool Lane::nothing_holds_up() const {
  return std::none_of(operations_.begin(), operations_.end(), [this](const auto* each) { return holds_up(*each); });
}

bool Lane::holds_back() const {
  return std::any_of(operations_.begin(), operations_.end(), [](const auto* each) { return each->held_back(); });
}

void Lane::add(PostedCall* operation) {
  may_issue_ = nothing_holds_up();
  operations_.push_back(operation);  // may throw; nothing has happened yet
  operation->lane = this;
  start(*operation);
}

void Lane::start(PostedCall& operation) {
  try {
    leave();  // a lane that is used for the first time may be late
  } catch (const std::exception&) {
    // Without memory: the next round tries again. The operation has its place in the order.
  }
  operation.sequence = next_sequence_++;
  operation.state = PostedState::queued;
  operation.start_messages(shadow_);
  ++shares_;
  if (!operation.call->uses_service()) return end(operation, MPI_SUCCESS);
  step(operation);
}

void Lane::defer(PostedCall* operation) {
  operations_.push_back(operation);  // may throw; nothing has happened yet
  operation->lane = this;
  operation->state = PostedState::deferred;
  deferred_.fetch_add(1, std::memory_order_release);
  take_deferred();
}

void Lane::take_deferred() {
  while (defers()) {
    PostedCall& first = *operations_[operations_.size() - deferred_.load(std::memory_order_relaxed)];
    if (!take(first)) return;
    deferred_.fetch_sub(1, std::memory_order_release);  // only now: who posts next comes behind it
  }
}

bool Lane::take(PostedCall& operation) {
  if (operation.open) {
    const std::optional<Answer> answer = adapter_->decide(*operation.open);
    if (!answer) return false;
    operation.open.reset();
    operation.algorithm = answer->choice.algorithm;
    if (answer->choice.path == policy::Path::host) {
      issue_natively(operation, adapter_->council());
      return true;
    }
  }
  may_issue_ = nothing_holds_up();
  switch (route(*operation.call)) {
    case Route::lane:
      start(operation);
      break;
    case Route::shadow:
      issue_natively(operation, shadow_);
      break;
    case Route::error:
      offloader.end(operation, failure_code());
      break;
  }
  return true;
}

void Lane::issue_natively(PostedCall& operation, MPI_Comm comm) {
  operation.never_served = true;
  operation.issue(comm);
  counters.count_native(operation.call->collective->id);
  offloader.end(operation, MPI_SUCCESS);
}

void Lane::try_post(PostedCall& operation) {
  offpath_team_t* const handle = service_->open();
  offpath_status_t status = OFFPATH_ERR_NOT_STARTED;
  if (handle != nullptr) {
    offpath_team_skip(handle, operation.sequence - service_sequence_);
    service_sequence_ = operation.sequence;
    status = operation.post(handle);
  }
  if (status == OFFPATH_OK) {
    ++service_sequence_;
    operation.state = PostedState::posted;
    refused_posts_ = 0;
    offloader.count_posted(operation);
    return;
  }
  if (status == OFFPATH_ERR_NO_MEMORY && (offloader.posted_count() > 0 || ++refused_posts_ < kMaxRefusedPosts)) return;
  if (client::is_loss(status) || !service_->alive()) {
    operation.status = OFFPATH_ERR_NOT_STARTED;
    operation.state = PostedState::unfinished;
    begin_cut();
    return;
  }
  end(operation, offloader.errors().code_for(status));
}

void Lane::end(PostedCall& operation, int error) {
  --shares_;
  told_.note(operation.sequence);
  offloader.end(operation, error);
}

void Lane::advance() {
  // Listening also keeps native progress going for everybody else's sake.
  const bool looks_for_turns = ++rounds_ % kRoundsPerLook == 0;
  const bool looks = shares_ > 0 || phase_ != Phase::offloading || looks_for_turns;
  if (looks && is_broken()) begin_cut();
  leave();
  if (looks) respond(looks_for_turns);
  take_deferred();
  may_issue_ = true;
  for (PostedCall* operation : operations_) step(*operation);
  for (auto next = operations_.begin(); next != operations_.end();) {
    if ((*next)->state != PostedState::ended || !(*next)->natives.done()) {
      ++next;
      continue;
    }
    offloader.complete(**next);
    next = operations_.erase(next);
  }
}

void Lane::step(PostedCall& operation) {
  switch (operation.state) {
    case PostedState::queued:
      if (waits_for_next(operation.sequence)) break;
      if (phase_ == Phase::offloading && may_issue_) try_post(operation);
      if (is_agreed() || phase_ == Phase::dead) {
        operation.status = OFFPATH_ERR_NOT_STARTED;
        step_unfinished(operation);
      }
      break;
    case PostedState::posted:
      step_posted(operation);
      break;
    case PostedState::unfinished:
      step_unfinished(operation);
      break;
    case PostedState::deferred:
    case PostedState::reissue:
    case PostedState::ended:
    case PostedState::finished:
      break;
  }
  if (operation.state == PostedState::reissue) {
    if (phase_ == Phase::dead) {
      fail_lost(operation, failure_);
    } else if (may_issue_) {
      reissue(operation);
    }
  }
  if (holds_up(operation)) may_issue_ = false;
}

void Lane::step_posted(PostedCall& operation) {
  // Helping (copying the own block) is due whenever the application tests or waits: nobody else may do it.
  const offpath_status_t status = offpath_op_help(operation.op);
  if (status == OFFPATH_IN_PROGRESS) {
    if (phase_ == Phase::dead && !is_told_of_lost()) fail_lost(operation, failure_);  // else the service ends it
  } else if (phase_ != Phase::offloading || client::is_loss(status) || service_->broken()) {
    // Whether it stands is up to all: a result that is here now may not be everywhere.
    operation.status = status;
    operation.state = PostedState::unfinished;
    begin_cut();
    step_unfinished(operation);
  } else if (status == OFFPATH_OK) {
    finish_done(operation);
  } else {
    const int code = offloader.errors().code_for(status);
    end(operation, code == MPI_SUCCESS ? operation.deliver(shadow_) : code);
  }
}

void Lane::finish_done(PostedCall& operation) { end(operation, operation.deliver(shadow_)); }

}  // namespace offpath::mpi
