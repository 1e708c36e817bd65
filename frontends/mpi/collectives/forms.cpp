// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/forms.hpp"

#include "communicators.hpp"
#include "engine.hpp"
#include "handlers.hpp"
#include "job.hpp"
#include "persistent.hpp"
#include "submit.hpp"
#include "waiting.hpp"

#include <exception>

namespace offpath::mpi {
namespace {

// The team of `comm`, or nullptr: the call is native.
Team* team_of(MPI_Comm comm) {
  if (Inside::here()) return nullptr;
  recording::decision.why = "off";
  if (!job.active()) {
    engine.count_passed(Passed::off);
    return nullptr;
  }
  recording::decision.why = "communicator";
  Team* const team = engine.find_team(comm);
  if (team == nullptr) engine.count_passed(Passed::communicator);
  return team;
}

// False: the call is native.
bool describe(Call& call, const Team& team) {
  const Inside inside;
  if (call.collective->describe(call, team)) return true;
  engine.count_native(call.collective->id);
  if (call.by_policy) return false;
  recording::decision.why = "form";
  engine.counters().form_count.fetch_add(1, std::memory_order_relaxed);
  return false;
}

std::shared_ptr<const Call> kept(Call&& call) { return std::make_shared<const Call>(std::move(call)); }

}  // namespace

bool offload(const Collective& collective, const Arguments& arguments, MPI_Comm comm, MPI_Request* request, int* code) {
  Team* const team = team_of(comm);
  if (team == nullptr || request == nullptr) return false;
  const uint64_t begin = now_ns();
  try {
    Call call(collective, arguments, Use::once);
    // Natively with the caller's own arrays, as they must stay until the operation is done.
    if (describe(call, *team)) {
      const std::optional<Ask> open = call.open;
      *code = submit(*team, kept(std::move(call)), open, arguments, request);
    } else if (call.on_council) {
      *code = collective.issue(arguments, team->adapter().council(), request);
    } else {
      return false;
    }
  } catch (const std::exception&) {
    *code = MPI_ERR_NO_MEM;
  }
  if (*code != MPI_SUCCESS) raise_error(comm, *code);
  engine.counters().post_ns.fetch_add(now_ns() - begin, std::memory_order_relaxed);
  return true;
}

bool offload_blocking(const Collective& collective, const Arguments& arguments, MPI_Comm comm, int* code) {
  MPI_Request request = MPI_REQUEST_NULL;
  recording::decision.why = "blocking";
  if (!job.offloads_blocking(collective.id)) {
    if (!Inside::here()) engine.count_passed(job.active() ? Passed::blocking : Passed::off);
    return false;
  }
  if (!offload(collective, arguments, comm, &request, code)) return false;
  if (*code == MPI_SUCCESS) *code = handlers::Wait(&request, MPI_STATUS_IGNORE);
  return true;
}

void adopt_persistent(const Collective& collective, const Arguments& arguments, MPI_Comm comm, MPI_Request* request) {
  const Team* const parent = team_of(comm);
  if (parent == nullptr) return;
  try {
    Call call(collective, arguments, Use::many);
    if (!describe(call, *parent)) return;
    std::unique_ptr<Team> team =
        make_team(comm, parent->comm_cell(), !parent->broken(), parent->adapter().preference());
    if (team != nullptr) persistents.add(*request, kept(std::move(call)), std::move(team));
  } catch (const std::exception&) {
    // The other ranks may wait for this one in the agreement; MPI itself does no better without memory.
    say(job.settings(), LogLevel::error, "out of memory while a persistent collective was made");
  }
}

}  // namespace offpath::mpi
