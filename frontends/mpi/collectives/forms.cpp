// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/forms.hpp"

#include "base/clock.hpp"
#include "mpi/job/counters.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/lanes/new_lane.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/lanes/submit.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/requests/persistent.hpp"

#include <exception>
#include <string>

namespace offpath::mpi {
namespace {

// The lane of `comm`, or nullptr: the call is native.
Lane* lane_of(MPI_Comm comm) {
  if (Inside::here()) return nullptr;
  recording::decision.why = "off";
  if (!job.active()) {
    counters.count_passed(Passed::off);
    return nullptr;
  }
  recording::decision.why = "communicator";
  Lane* const lane = offloader.find_lane(comm);
  if (lane == nullptr) counters.count_passed(Passed::communicator);
  return lane;
}

// False: the call is native.
bool describe(const Offloadable& collective, Call& call, const Lane& lane) {
  const Inside inside;
  if (collective.describe(call, lane)) return true;
  counters.count_native(collective.id);
  if (call.by_policy) return false;
  recording::decision.why = "form";
  counters.form_count.fetch_add(1, std::memory_order_relaxed);
  return false;
}

std::shared_ptr<const Call> kept(Call&& call) { return std::make_shared<const Call>(std::move(call)); }

}  // namespace

bool offload(const Offloadable& collective, const Arguments& arguments, MPI_Comm comm, MPI_Request* request,
             int* code) {
  Lane* const lane = lane_of(comm);
  if (lane == nullptr || request == nullptr) return false;
  const uint64_t begin = base::clock_ns();
  try {
    Call call(collective, arguments, Use::once);
    call.is_behind = lane->defers();
    // Natively with the caller's own arrays, as they must stay until the operation is done.
    if (describe(collective, call, *lane)) {
      const std::optional<Ask> open = call.open;
      *code = submit(*lane, kept(std::move(call)), open, arguments, request);
    } else if (call.on_council) {
      *code = collective.issue(arguments, lane->adapter().council(), request);
    } else {
      return false;
    }
  } catch (const std::exception&) {
    *code = MPI_ERR_NO_MEM;
  }
  if (*code != MPI_SUCCESS) raise_error(comm, *code);
  counters.post_ns.fetch_add(base::clock_ns() - begin, std::memory_order_relaxed);
  return true;
}

bool offload_blocking(const Offloadable& collective, const Arguments& arguments, MPI_Comm comm, int* code) {
  MPI_Request request = MPI_REQUEST_NULL;
  recording::decision.why = "blocking";
  if (!job.offloads_blocking(collective.id)) {
    if (!Inside::here()) counters.count_passed(job.active() ? Passed::blocking : Passed::off);
    return false;
  }
  if (!offload(collective, arguments, comm, &request, code)) return false;
  if (*code == MPI_SUCCESS) *code = handlers::Wait(&request, MPI_STATUS_IGNORE);
  return true;
}

void adopt_persistent(const Offloadable& collective, const Arguments& arguments, MPI_Comm comm, MPI_Request* request) {
  constexpr const char* kWhat = "a persistent collective";
  const Lane* const parent = lane_of(comm);
  if (parent == nullptr) return;
  std::shared_ptr<const Call> call;
  std::string compress;
  try {
    Call described(collective, arguments, Use::many);
    if (!describe(collective, described, *parent)) return;
    compress = offloader.compress(*parent);
    call = kept(std::move(described));
  } catch (const std::exception& problem) {
    say_cannot(kWhat, problem);
  }
  const bool able = call != nullptr && !parent->broken();
  NewLane made(comm, kWhat, parent->comm_cell(), able, parent->adapter().preference(), compress);
  bool entered = false;
  try {
    if (made.get() != nullptr) standings.add(*request, std::make_unique<Persistent>(std::move(call), *made.get()));
    entered = made.get() != nullptr;
  } catch (const std::exception& problem) {
    say_cannot(kWhat, problem);
  }
  if (!made.agree(entered) && entered) standings.take(*request);
}

}  // namespace offpath::mpi
