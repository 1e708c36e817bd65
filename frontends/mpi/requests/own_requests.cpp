// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/own_requests.hpp"

#include <algorithm>

namespace offpath::mpi {

OwnRequests::OwnRequests(int count, MPI_Request* requests) : requests_(requests) {
  if (requests == nullptr) return;
  for (int index = 0; index < count; ++index) {
    MPI_Request request = requests[index];
    if (request == MPI_REQUEST_NULL) continue;
    if (Persistent* const persistent = persistents.find(request)) {
      if (exchanged_.empty()) exchanged_.assign(requests, requests + count);
      request = exchanged_[static_cast<size_t>(index)] = persistent->current;
      standing_.push_back({index, persistent});
    }
    Requested* operation = request == MPI_REQUEST_NULL ? nullptr : offloader.find(request);
    if (operation == nullptr) continue;
    own_.push_back({index, operation});
    Offloader::hold(*operation);
  }
}

OwnRequests::~OwnRequests() {
  for (const Entry& entry : own_) Offloader::release(*entry.operation);
}

int OwnRequests::settle(int code) {
  auto standing = standing_.begin();
  for (size_t index = 0; index < exchanged_.size(); ++index) {
    if (standing == standing_.end() || static_cast<size_t>(standing->index) != index) {
      requests_[index] = exchanged_[index];
      continue;
    }
    standing->persistent->current = exchanged_[index];
    ++standing;
  }
  return code;
}

bool OwnRequests::all_finished() const {
  return std::all_of(own_.begin(), own_.end(),
                     [](const Entry& entry) { return entry.operation->finished.load(std::memory_order_acquire); });
}

bool OwnRequests::any_at_service() const {
  return std::any_of(own_.begin(), own_.end(),
                     [](const Entry& entry) { return !entry.operation->natively.load(std::memory_order_acquire); });
}

const Requested* OwnRequests::failed_at(int index) const {
  const auto entry =
      std::lower_bound(own_.begin(), own_.end(), index, [](const Entry& e, int wanted) { return e.index < wanted; });
  if (entry == own_.end() || entry->index != index) return nullptr;
  const Requested* operation = entry->operation;
  const bool failed = operation->finished.load(std::memory_order_acquire) && operation->error != MPI_SUCCESS;
  return failed ? operation : nullptr;
}

const Requested* OwnRequests::any_failed() const {
  for (const Entry& entry : own_) {
    if (const Requested* operation = failed_at(entry.index)) return operation;
  }
  return nullptr;
}

}  // namespace offpath::mpi
