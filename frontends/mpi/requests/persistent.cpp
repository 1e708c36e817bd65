// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/persistent.hpp"

#include "mpi/job/counters.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/lanes/submit.hpp"
#include "mpi/native/handle_table.hpp"
#include "mpi/native/handlers.hpp"

#include <exception>
#include <vector>

namespace offpath::mpi {

Persistents persistents;

int Persistent::start() {
  int code = MPI_ERR_REQUEST;  // started already
  if (!active()) {
    try {
      code = issue();
    } catch (const std::exception&) {
      code = MPI_ERR_NO_MEM;
    }
  }
  return code == MPI_SUCCESS ? code : lane->raise(code);
}

int Persistent::issue() {
  recording::decision.why = "policy";
  std::optional<Ask> open;
  if (!call->pairwise) {
    const Adapter& adapter = lane->adapter();
    const Ask ask = adapter.ask(call->collective->id, call->asked_bytes);
    const std::optional<Answer> answer = lane->decide(ask);
    recording::decision.why = answer ? why_name(answer->why) : "agreement";
    if (!answer) open = ask;
    if (answer && answer->choice.path == policy::Path::host) {
      const Inside inside;
      counters.count_native(call->collective->id);
      const bool on_council = adapter.adapts(call->collective->id, call->asked_bytes);
      return call->collective->issue(call->arguments, on_council ? adapter.council() : lane->shadow(), &current);
    }
  }
  return submit(*lane, call, open, call->arguments, &current);
}

void Persistents::add(MPI_Request request, std::shared_ptr<const Call> call, std::unique_ptr<Lane> lane) {
  auto made = std::make_unique<Persistent>(Persistent{std::move(call), lane.get()});
  offloader.add_lane(std::move(lane));
  std::lock_guard lock(mutex_);
  entries_.insert_or_assign(handle_key(request), std::move(made));
  count_.store(entries_.size(), std::memory_order_release);
}

Persistent* Persistents::find(MPI_Request request) const {
  if (empty()) return nullptr;
  std::lock_guard lock(mutex_);
  const auto entry = entries_.find(handle_key(request));
  return entry == entries_.end() ? nullptr : entry->second.get();
}

void Persistents::remove(MPI_Request request) {
  std::lock_guard lock(mutex_);
  entries_.erase(handle_key(request));
  count_.store(entries_.size(), std::memory_order_release);
}

void Persistents::clear() {
  std::lock_guard lock(mutex_);
  entries_.clear();
  count_.store(0, std::memory_order_release);
}

namespace handlers {

int Start(MPI_Request* request) {
  Persistent* const ours = request == nullptr || Inside::here() ? nullptr : persistents.find(*request);
  return ours == nullptr ? native.Start(request) : ours->start();
}

int Startall(int count, MPI_Request requests[]) {
  std::vector<MPI_Request> others;
  std::vector<Persistent*> ours;
  for (int i = 0; i < count && requests != nullptr && !Inside::here(); ++i) {
    if (Persistent* const found = persistents.find(requests[i]))
      ours.push_back(found);
    else
      others.push_back(requests[i]);
  }
  if (ours.empty()) return native.Startall(count, requests);
  // Handles do not change when their requests are started.
  int code = others.empty() ? MPI_SUCCESS : native.Startall(static_cast<int>(others.size()), others.data());
  for (auto next = ours.begin(); next != ours.end() && code == MPI_SUCCESS; ++next) code = (*next)->start();
  return code;
}

}  // namespace handlers
}  // namespace offpath::mpi
