// SPDX-License-Identifier: BSD-3-Clause
#include "engine.hpp"

#include "native.hpp"
#include "tracing.hpp"

#include <algorithm>

namespace offpath::mpi {

Engine engine;

int Engine::query_callback(void*, MPI_Status* status) {
  // What a collective's status holds: nothing. Failures are reported by our waiting functions, which know how.
  native.Status_set_elements(status, MPI_BYTE, 0);
  native.Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  return MPI_SUCCESS;
}

int Engine::free_callback(void* argument) {
  auto& operation = *static_cast<Requested*>(argument);
  engine.requests_.erase(operation.request);
  release(operation);
  return MPI_SUCCESS;
}

int Engine::cancel_callback(void*, int) { return MPI_SUCCESS; }

void Engine::release(Requested& operation) {
  if (operation.owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (operation.error != MPI_SUCCESS) engine.attention_.fetch_sub(1, std::memory_order_relaxed);
  delete &operation;
}

int Engine::begin(Requested& operation) {
  const int code =
      native.Grequest_start(&query_callback, &free_callback, &cancel_callback, &operation, &operation.request);
  if (code != MPI_SUCCESS) return code;
  attention_.fetch_add(1, std::memory_order_relaxed);
  requests_.insert(operation.request, &operation);
  return MPI_SUCCESS;
}

int Engine::submit(std::unique_ptr<Loose> prepared, MPI_Request* request) {
  const Inside inside;
  std::lock_guard lock(mutex_);
  loose_.reserve(loose_.size() + 1);
  const int code = begin(*prepared);
  if (code != MPI_SUCCESS) return code;
  *request = prepared->request;
  loose_.push_back(prepared.release());  // now owned by its request and the list
  return MPI_SUCCESS;
}

Team::Route Engine::route(Team& team, const Call& call) {
  std::lock_guard lock(mutex_);
  return team.defers() ? Team::Route::team : team.route(call);
}

Team::Route Engine::submit(Team& team, std::unique_ptr<Operation> prepared, MPI_Request* request, int* code) {
  const Inside inside;
  std::lock_guard lock(mutex_);
  const bool deferred = prepared->open.has_value() || team.defers();
  const Team::Route route = deferred ? Team::Route::team : team.route(*prepared->call);
  if (route != Team::Route::team) return route;
  active_.reserve(active_.size() + 1);
  Operation& operation = *prepared;
  *code = begin(operation);
  if (*code != MPI_SUCCESS) return Team::Route::error;
  prepared.release();  // now owned by its request and its team
  const bool was_idle = team.idle();
  if (deferred)
    team.defer(&operation);
  else
    team.add(&operation);
  if (was_idle) active_.push_back(&team);
  *request = operation.request;
  return route;
}

void Engine::count_posted(const Operation& operation) {
  ++posted_count_;
  const auto which = static_cast<size_t>(operation.call->collective->id);
  counters_.collectives[which].offloaded_count.fetch_add(1, std::memory_order_relaxed);
  counters_.offloaded_bytes.fetch_add(operation.call->recv.bytes(), std::memory_order_relaxed);
}

void Engine::count_native(policy::Collective collective) {
  counters_.collectives[static_cast<size_t>(collective)].native_count.fetch_add(1, std::memory_order_relaxed);
}

void Engine::end(Operation& operation, int error) {
  if (operation.op != nullptr) {
    // The ranks may have given up on it while a service still writes: staging memory must outlive us.
    if (offpath_op_test(operation.op) == OFFPATH_IN_PROGRESS) operation.abandon_staging();
    if (operation.recorded != recording::kUnrecorded)
      tracing::record_service(operation.recorded, {&operation.op, 1}, error);
    offpath_op_free(operation.op);
    operation.op = nullptr;
    --posted_count_;
  }
  operation.state = OperationState::ended;
  operation.error = error;
  operation.natively.store(true, std::memory_order_release);
}

void Engine::complete(Operation& operation) {
  if (operation.error == MPI_SUCCESS) operation.error = operation.natives.error();
  if (operation.call->uses_service() && !operation.never_served) {
    auto& counter = operation.error == MPI_SUCCESS ? counters_.completed_count : counters_.failed_count;
    counter.fetch_add(1, std::memory_order_relaxed);
  }
  operation.state = OperationState::finished;
  operation.release();
  finish(operation);
}

void Engine::finish(Requested& operation) {
  if (operation.error == MPI_SUCCESS) attention_.fetch_sub(1, std::memory_order_relaxed);
  operation.finished.store(true, std::memory_order_release);
  native.Grequest_complete(operation.request);
  release(operation);
}

void Engine::progress() {
  const Inside inside;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (Team* team : active_) team->advance();
  std::erase_if(active_, [](const Team* team) { return team->idle(); });
  std::erase_if(loose_, [this](Loose* operation) {
    const bool ended = operation->advance();
    if (ended) finish(*operation);
    return ended;
  });
}

void Engine::progress_all(AtEnd task) {
  progress();
  const Inside inside;
  std::lock_guard lock(mutex_);
  for (const auto& team : teams_) {
    if (task == AtEnd::look)
      team->check();
    else
      team->respond();
  }
}

bool Engine::settled() {
  std::lock_guard lock(mutex_);
  return std::all_of(teams_.begin(), teams_.end(), [](const auto& team) { return team->settled(); });
}

bool Engine::drained() {
  const Inside inside;
  std::lock_guard lock(mutex_);
  if (!active_.empty() || !loose_.empty()) return false;
  return std::all_of(teams_.begin(), teams_.end(), [](const auto& team) { return team->adapter().idle(); });
}

void Engine::adopt(std::unique_ptr<Team> team) {
  Team* const value = team.get();
  add_team(std::move(team));
  teams_by_comm_.insert(value->comm(), value);
}

void Engine::add_team(std::unique_ptr<Team> team) {
  std::lock_guard lock(mutex_);
  teams_.push_back(std::move(team));
}

void Engine::forget_comm(MPI_Comm comm, Team& team) {
  teams_by_comm_.erase(comm);
  team.forget_comm();
  team.close();
}

size_t Engine::team_count() {
  std::lock_guard lock(mutex_);
  return teams_.size();
}

void Engine::retire() {
  const Inside inside;
  std::lock_guard lock(mutex_);
  std::erase_if(teams_, [](const auto& team) { return team->retirable(); });
}

void Engine::clear() {
  const Inside inside;
  std::lock_guard lock(mutex_);
  active_.clear();
  teams_.clear();
}

std::vector<MPI_Comm> Engine::communicators() {
  std::lock_guard lock(mutex_);
  std::vector<MPI_Comm> found;
  for (const auto& team : teams_) {
    const MPI_Comm comm = team->comm();
    if (comm != MPI_COMM_NULL && teams_by_comm_.find(comm) == team.get()) found.push_back(comm);
  }
  return found;
}

}  // namespace offpath::mpi
