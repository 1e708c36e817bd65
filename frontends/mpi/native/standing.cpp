// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/standing.hpp"

#include "mpi/native/handle_table.hpp"
#include "mpi/native/native.hpp"

namespace offpath::mpi {

Standings standings;

void Standings::add(MPI_Request request, std::unique_ptr<Standing> made) {
  std::lock_guard lock(mutex_);
  entries_[handle_key(request)].swap(made);
  count_.store(entries_.size(), std::memory_order_release);
}

Standing* Standings::find(MPI_Request request) const {
  if (empty()) return nullptr;
  std::lock_guard lock(mutex_);
  const auto entry = entries_.find(handle_key(request));
  return entry == entries_.end() ? nullptr : entry->second.get();
}

std::unique_ptr<Standing> Standings::take(MPI_Request request) {
  if (empty()) return nullptr;
  std::lock_guard lock(mutex_);
  auto entry = entries_.extract(handle_key(request));
  count_.store(entries_.size(), std::memory_order_release);
  return entry.empty() ? nullptr : std::move(entry.mapped());
}

int Standings::start(MPI_Request* request) const {
  Standing* const found = request == nullptr ? nullptr : find(*request);
  return found == nullptr ? native.Start(request) : found->start(request);
}

// One by one where any is ours: each has its place in the order of messages. Handles do not change.
int Standings::start_all(int count, MPI_Request* requests) const {
  if (empty() || requests == nullptr) return native.Startall(count, requests);
  int code = MPI_SUCCESS;
  for (int i = 0; i < count && code == MPI_SUCCESS; ++i) code = start(&requests[i]);
  return code;
}

void Standings::clear() {
  decltype(entries_) gone;
  std::lock_guard lock(mutex_);
  gone.swap(entries_);
  count_.store(0, std::memory_order_release);
}

Exchanged::Exchanged(int count, MPI_Request* requests) : count_(count), requests_(requests) {
  if (standings.empty() || requests == nullptr) return;
  for (int i = 0; i < count; ++i) {
    Standing* const found = standings.find(requests[i]);
    if (found == nullptr) continue;
    copies()[i] = found->current;
    standings_.emplace_back(static_cast<size_t>(i), found);
  }
}

Exchanged::~Exchanged() {
  for (const auto& [index, standing] : standings_) {
    standing->current = std::exchange(copies_[index], requests_[index]);
  }
  for (size_t i = 0; i < copies_.size(); ++i) requests_[i] = copies_[i];
}

MPI_Request* Exchanged::copies() {
  if (copies_.empty()) copies_.assign(requests_, requests_ + count_);
  return copies_.data();
}

}  // namespace offpath::mpi
