// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/offloader.hpp"

#include "base/clock.hpp"
#include "mpi/job/counters.hpp"
#include "mpi/job/job.hpp"
#include "mpi/native/native.hpp"
#include "mpi/recording/service_times.hpp"

#include <algorithm>

namespace offpath::mpi {

Offloader offloader;

int Offloader::query_callback(void* argument, MPI_Status* status) {
  // Failures are reported by our waiting functions, which know how.
  const auto moved = static_cast<const Generalized*>(argument)->moved_bytes();
  native.Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(moved));
  native.Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  return MPI_SUCCESS;
}

int Offloader::free_callback(void* argument) {
  auto& operation = *static_cast<Generalized*>(argument);
  offloader.requests_.erase(operation.request);
  release(operation);
  return MPI_SUCCESS;
}

int Offloader::cancel_callback(void*, int) { return MPI_SUCCESS; }

void Offloader::release(Requested& requested) {
  if (requested.owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (requested.error != MPI_SUCCESS) offloader.attention_.fetch_sub(1, std::memory_order_relaxed);
  delete &requested;
}

void Offloader::follow(MPI_Request request, Requested& requested) {
  requests_.insert(request, &requested);
  hold(requested);
  followed_.fetch_add(1, std::memory_order_release);
}

void Offloader::forget(MPI_Request request, Requested& requested) {
  requests_.erase(request);
  followed_.fetch_sub(1, std::memory_order_relaxed);
  release(requested);
}

int Offloader::begin(Generalized& operation) {
  const int code =
      native.Grequest_start(&query_callback, &free_callback, &cancel_callback, &operation, &operation.request);
  if (code != MPI_SUCCESS) return code;
  operation.owners.store(2, std::memory_order_relaxed);
  attention_.fetch_add(1, std::memory_order_relaxed);
  requests_.insert(operation.request, &operation);
  return MPI_SUCCESS;
}

int Offloader::submit(std::unique_ptr<Loose> prepared, MPI_Request* request) {
  const Inside inside;
  std::lock_guard lock(mutex_);
  loose_.reserve(loose_.size() + 1);
  const int code = begin(*prepared);
  if (code != MPI_SUCCESS) return code;
  *request = prepared->request;
  loose_.push_back(prepared.release());  // now owned by its request and the list
  return MPI_SUCCESS;
}

Lane::Route Offloader::route(Lane& lane, const Call& call) {
  std::lock_guard lock(mutex_);
  return lane.defers() ? Lane::Route::lane : lane.route(call);
}

Lane::Route Offloader::submit(Lane& lane, std::unique_ptr<PostedCall> prepared, MPI_Request* request, int* code) {
  const Inside inside;
  std::lock_guard lock(mutex_);
  const bool deferred = prepared->open.has_value() || lane.defers();
  const Lane::Route route = deferred ? Lane::Route::lane : lane.route(*prepared->call);
  if (route != Lane::Route::lane) return route;
  active_.reserve(active_.size() + 1);
  PostedCall& operation = *prepared;
  *code = begin(operation);
  if (*code != MPI_SUCCESS) return Lane::Route::error;
  [[maybe_unused]] const auto* owned = prepared.release();  // by its request and its lane
  const bool was_idle = lane.idle();
  if (deferred)
    lane.defer(&operation);
  else
    lane.add(&operation);
  if (was_idle) active_.push_back(&lane);
  if (operation.held_back()) hold_back(true);
  if (!in_use_.exchange(true, std::memory_order_relaxed)) mover_.wake();
  *request = operation.request;
  return route;
}

void Offloader::count_posted(const PostedCall& operation) {
  ++posted_count_;
  const auto which = static_cast<size_t>(operation.call->collective->id);
  counters.collectives[which].offloaded_count.fetch_add(1, std::memory_order_relaxed);
  counters.offloaded_bytes.fetch_add(operation.call->recv.bytes(), std::memory_order_relaxed);
}

void Offloader::end(PostedCall& operation, int error) {
  if (operation.op != nullptr) {
    // The ranks may have given up on it while a service still writes: staging memory must outlive us.
    if (offpath_op_test(operation.op) == OFFPATH_IN_PROGRESS) operation.abandon_staging();
    if (operation.recorded != recording::kUnrecorded)
      recording::record_service(operation.recorded, {&operation.op, 1}, error);
    offpath_op_free(operation.op);
    operation.op = nullptr;
    --posted_count_;
  }
  operation.state = PostedState::ended;
  operation.error = error;
  operation.natively.store(true, std::memory_order_release);
}

void Offloader::complete(PostedCall& operation) {
  if (operation.error == MPI_SUCCESS) operation.error = operation.lane->error_of(operation.natives.error());
  if (operation.call->uses_service() && !operation.never_served) {
    auto& counter = is_failure(operation.error) ? counters.failed_count : counters.completed_count;
    counter.fetch_add(1, std::memory_order_relaxed);
  }
  operation.state = PostedState::finished;
  operation.release();
  finish(operation);
}

// Whoever sees that nothing needs attention hands its requests to the library at once, so that has to know before.
void Offloader::finish(Generalized& operation) {
  operation.finished.store(true, std::memory_order_release);
  native.Grequest_complete(operation.request);
  operation.completed.store(true, std::memory_order_release);
  if (operation.error == MPI_SUCCESS) attention_.fetch_sub(1, std::memory_order_release);
  release(operation);
}

void Offloader::progress() {
  const Inside inside;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  advance_lanes();
  std::erase_if(loose_, [this](Loose* operation) {
    const bool ended = operation->advance();
    if (ended) finish(*operation);
    return ended;
  });
}

bool Offloader::look_is_due() const {
  return in_use_.load(std::memory_order_relaxed) && (looks_often() || is_look_late());
}

bool Offloader::is_look_late() const {
  return base::clock_ns(CLOCK_MONOTONIC_COARSE) - looked_ns_.load(std::memory_order_relaxed) >= kLookNs;
}

// Also lanes whose operations have all ended here, or have not begun: others may be at them, and wait for this rank's word.
void Offloader::look() {
  for (const Also& also : also_) also.look();
  if (!is_look_late() && lanes_often_ == 0) return;
  looked_ns_.store(base::clock_ns(CLOCK_MONOTONIC_COARSE), std::memory_order_relaxed);
  for (const auto& lane : lanes_) lane->check();
}

void Offloader::look_also(const void* owner, std::function<void()> look) {
  std::lock_guard lock(mutex_);
  also_.push_back({owner, std::move(look)});
  if (!in_use_.exchange(true, std::memory_order_relaxed)) mover_.wake();
}

void Offloader::look_less(const void* owner) {
  std::lock_guard lock(mutex_);
  std::erase_if(also_, [owner](const Also& also) { return also.owner == owner; });
}

void Offloader::look_often(bool begins) {
  often_.fetch_add(begins ? 1 : -1, std::memory_order_relaxed);
  if (begins) mover_.wake();
}

void Offloader::advance_lanes() {
  if (look_is_due()) look();
  for (Lane* lane : active_) lane->advance();
  std::erase_if(active_, [](const Lane* lane) { return lane->idle(); });
  hold_back(std::any_of(active_.begin(), active_.end(), [](const Lane* lane) { return lane->holds_back(); }));
}

void Offloader::hold_back(bool held) {
  if (!holds_back_.exchange(held, std::memory_order_relaxed) && held) mover_.wake();
}

void Offloader::progress_all(AtEnd task) {
  progress();
  const Inside inside;
  std::lock_guard lock(mutex_);
  for (const auto& lane : lanes_) {
    if (task == AtEnd::look)
      lane->check();
    else
      lane->respond();
  }
  for (const Also& also : also_) also.look();
}

bool Offloader::departed() {
  const Inside inside;
  std::lock_guard lock(mutex_);
  size_t here = 0;
  for (const auto& lane : lanes_) here += lane->departed() ? 0 : 1;  // each is asked: none waits for another
  return here == 0;
}

bool Offloader::drained() {
  const Inside inside;
  std::lock_guard lock(mutex_);
  const auto left = [](const Loose* operation) { return operation->waits_for_programs(); };
  if (!active_.empty() || !std::all_of(loose_.begin(), loose_.end(), left)) return false;
  return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->adapter().idle(); });
}

void Offloader::leave() {
  const Inside inside;
  std::lock_guard lock(mutex_);
  for (Loose* operation : loose_) {
    operation->leave();
    finish(*operation);
  }
  loose_.clear();
}

void Offloader::add_lane(Lanes& one) {
  std::lock_guard lock(mutex_);
  lanes_.splice(lanes_.end(), one);
}

void Offloader::forget_comm(MPI_Comm comm, Lane& lane) {
  lanes_by_comm_.erase(comm);
  lane.forget_comm();
  lane.close();
}

void Offloader::revoke(MPI_Comm comm) {
  const Inside inside;
  std::lock_guard lock(mutex_);
  for (const auto& lane : lanes_) {
    if (lane->comm() == comm) lane->revoke();
  }
}

std::string Offloader::compress(const Lane& lane) {
  std::lock_guard lock(mutex_);
  return lane.compress();
}

void Offloader::compress(Lane& lane, const std::string& wish) {
  std::lock_guard lock(mutex_);
  lane.compress(wish);
}

void Offloader::retire() {
  const Inside inside;
  const Meeting::Left meeting;  // this holds the lock
  std::lock_guard lock(mutex_);
  std::erase_if(lanes_, [](const auto& lane) { return lane->closed() && lane->departed(); });
}

void Offloader::clear() {
  const Inside inside;
  std::lock_guard lock(mutex_);
  active_.clear();
  // What others may still send to, or wait at, stays until the process ends.
  for (auto& lane : lanes_) {
    if (!lane->departed()) static_cast<void>(lane.release());
  }
  lanes_.clear();
}

std::vector<MPI_Comm> Offloader::communicators() {
  std::lock_guard lock(mutex_);
  std::vector<MPI_Comm> found;
  for (const auto& lane : lanes_) {
    const MPI_Comm comm = lane->comm();
    if (comm != MPI_COMM_NULL && lanes_by_comm_.find(comm) == lane.get()) found.push_back(comm);
  }
  return found;
}

}  // namespace offpath::mpi
