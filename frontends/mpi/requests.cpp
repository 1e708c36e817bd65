// SPDX-License-Identifier: BSD-3-Clause
#include "requests.hpp"

#include <algorithm>

namespace offpath::mpi {

OwnRequests::OwnRequests(int count, const MPI_Request* requests) {
  if (requests == nullptr) return;
  for (int index = 0; index < count; ++index) {
    if (requests[index] == MPI_REQUEST_NULL) continue;
    Operation* operation = engine.find(requests[index]);
    if (operation == nullptr) continue;
    own_.push_back({index, operation});
    Engine::hold(*operation);
  }
}

OwnRequests::~OwnRequests() {
  for (const Entry& entry : own_) Engine::release(*entry.operation);
}

bool OwnRequests::all_finished() const {
  return std::all_of(own_.begin(), own_.end(),
                     [](const Entry& entry) { return entry.operation->finished.load(std::memory_order_acquire); });
}

const Operation* OwnRequests::failed_at(int index) const {
  const auto entry =
      std::lower_bound(own_.begin(), own_.end(), index, [](const Entry& e, int wanted) { return e.index < wanted; });
  if (entry == own_.end() || entry->index != index) return nullptr;
  const Operation* operation = entry->operation;
  const bool failed = operation->finished.load(std::memory_order_acquire) && operation->error != MPI_SUCCESS;
  return failed ? operation : nullptr;
}

const Operation* OwnRequests::any_failed() const {
  for (const Entry& entry : own_) {
    if (const Operation* operation = failed_at(entry.index)) return operation;
  }
  return nullptr;
}

int raise_failure(const Operation& operation, int code) {
  const MPI_Comm comm = operation.team->comm();
  return raise_error(comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm, code);
}

}  // namespace offpath::mpi
