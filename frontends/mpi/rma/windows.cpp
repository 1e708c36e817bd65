// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/windows.hpp"

#include "mpi/job/job.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/handlers.hpp"

#include <algorithm>
#include <exception>

namespace offpath::mpi {

Windows windows;

void Windows::add(std::shared_ptr<OffloadedWindow> window) {
  // Others may ask a rank that has posted nothing.
  if (window->homecoming() != nullptr && !listens_) {
    offloader.look_also(this, [this] { listen(); });  // may throw; by two threads does no harm
    listens_ = true;
  }
  std::lock_guard lock(mutex_);
  owned_.reserve(owned_.size() + 1);
  table_.insert(window->handle(), window.get());
  owned_.push_back(std::move(window));
  count_.store(owned_.size(), std::memory_order_release);
}

void Windows::count_ended(const OffloadedWindow& window) {
  totals_.operations_count.fetch_add(window.operations(), std::memory_order_relaxed);
  totals_.operations_bytes.fetch_add(window.bytes(), std::memory_order_relaxed);
  if (window.mixture() == nullptr) return;
  totals_.natively_count.fetch_add(window.mixture()->operations(), std::memory_order_relaxed);
  totals_.natively_bytes.fetch_add(window.mixture()->bytes(), std::memory_order_relaxed);
}

void Windows::remove(OffloadedWindow& window) {
  const std::shared_ptr<OffloadedWindow> held = window.shared_from_this();
  {
    std::lock_guard lock(mutex_);
    table_.erase(window.handle());
    std::erase(owned_, held);
    count_.store(owned_.size(), std::memory_order_release);
  }
  count_ended(window);
  window.close();
}

std::vector<std::shared_ptr<OffloadedWindow>> Windows::meeting_on(MPI_Comm comm) {
  std::vector<std::shared_ptr<OffloadedWindow>> meeting;
  int size = 0;
  if (comm == MPI_COMM_NULL || native.Comm_size(comm, &size) != MPI_SUCCESS) return meeting;
  std::lock_guard lock(mutex_);
  for (const auto& window : owned_) {
    int relation = MPI_UNEQUAL;
    if (window->mixture() == nullptr || window->size() != size) continue;
    native.Comm_compare(comm, window->shadow(), &relation);
    if (relation != MPI_UNEQUAL && window->mixture()->meets()) meeting.push_back(window);
  }
  return meeting;
}

void Windows::listen() {
  std::vector<std::shared_ptr<OffloadedWindow>> here;
  {
    std::lock_guard lock(mutex_);
    here = owned_;
  }
  for (const auto& window : here) {
    if (window->homecoming() != nullptr) window->homecoming()->attend();
  }
}

void Windows::clear() {
  if (listens_.exchange(false)) offloader.look_less(this);
  std::vector<std::shared_ptr<OffloadedWindow>> left;
  {
    std::lock_guard lock(mutex_);
    left.swap(owned_);
    for (const auto& window : left) table_.erase(window->handle());
    count_.store(0, std::memory_order_release);
  }
  for (const auto& window : left) {
    count_ended(*window);
    window->close();
  }
}

namespace {

int free_natively(MPI_Win* win) {
  const MPI_Win handle = win == nullptr ? MPI_WIN_NULL : *win;
  WindowMemory::Parts parts = windows.memory.take(handle);
  const int code = native.Win_free(win);
  code == MPI_SUCCESS ? WindowMemory::let_go(parts) : windows.memory.give_back(parts);
  return code;
}

}  // namespace

namespace handlers {
namespace {

int attach_error(int code) { return code == MPI_ERR_ARG ? MPI_ERR_RMA_ATTACH : code; }

}  // namespace

int Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  constexpr const char* kCall = name_of(&Native::Win_attach);
  OffloadedWindow* const window = windows.find(win);
  if (window == nullptr) {
    windows.memory.keep(base, size);
    const int code = native.Win_attach(win, base, size);
    windows.memory.kept(code == MPI_SUCCESS, win, base, size);
    return code;
  }
  if (!window->dynamic()) return window->raise(kCall, MPI_ERR_RMA_FLAVOR);
  if (size < 0) return window->raise(kCall, MPI_ERR_SIZE);
  int code = MPI_ERR_NO_MEM;
  try {
    code = attach_error(window->attach(base, static_cast<uint64_t>(size)));
  } catch (const std::exception&) {
  }
  return window->raise(kCall, code);
}

int Win_detach(MPI_Win win, const void* base) {
  constexpr const char* kCall = name_of(&Native::Win_detach);
  OffloadedWindow* const window = windows.find(win);
  if (window == nullptr) {
    const int code = native.Win_detach(win, base);
    if (code == MPI_SUCCESS) windows.memory.detach(win, base);
    return code;
  }
  if (!window->dynamic()) return window->raise(kCall, MPI_ERR_RMA_FLAVOR);
  return window->raise(kCall, attach_error(window->detach(const_cast<void*>(base))));
}

int Win_free(MPI_Win* win) {
  constexpr const char* kCall = name_of(&Native::Win_free);
  OffloadedWindow* const window = win == nullptr ? nullptr : windows.find(*win);
  if (window == nullptr) return free_natively(win);
  if (!window->epochs().may_free()) return window->raise(kCall, MPI_ERR_RMA_SYNC);
  int code = window->flush();
  window->finish_requests();
  window->part();
  window->raise(kCall, code);
  {
    const Inside inside;
    if (window->mixture() != nullptr) window->mixture()->close();
    windows.remove(*window);
  }
  const int freed = free_natively(win);
  return code == MPI_SUCCESS ? freed : code;
}

}  // namespace handlers
}  // namespace offpath::mpi
