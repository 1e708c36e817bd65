// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/window_memory.hpp"

#include "mpi/job/job.hpp"
#include "mpi/rma/lending.hpp"

#include <algorithm>
#include <new>

namespace offpath::mpi {

namespace {

bool counts(const void* base, MPI_Aint bytes) { return job.active() && base != nullptr && bytes > 0; }

}  // namespace

void WindowMemory::keep(const void* base, MPI_Aint bytes) {
  if (counts(base, bytes)) offpath_memory_keep(job.session(), base, static_cast<uint64_t>(bytes));
}

void WindowMemory::kept(bool belongs, MPI_Win win, const void* base, MPI_Aint bytes) {
  if (!counts(base, bytes)) return;
  const Part part{win, base, bytes, nullptr};
  belongs ? add(part) : let_go(part);
}

void WindowMemory::lent(MPI_Win win, void* memory) { add({win, memory, 0, memory}); }

// What cannot be remembered stays as it is for good.
void WindowMemory::add(const Part& part) {
  std::lock_guard lock(mutex_);
  try {
    parts_.push_back(part);
  } catch (const std::bad_alloc&) {
  }
}

bool WindowMemory::is_lent(MPI_Win win) const {
  std::lock_guard lock(mutex_);
  const auto is = [win](const Part& part) { return part.win == win && part.lent != nullptr; };
  return std::any_of(parts_.begin(), parts_.end(), is);
}

void WindowMemory::detach(MPI_Win win, const void* base) {
  std::lock_guard lock(mutex_);
  const auto is = [&](const Part& part) { return part.win == win && part.base == base; };
  const auto found = std::find_if(parts_.begin(), parts_.end(), is);
  if (found == parts_.end()) return;
  let_go(*found);
  parts_.erase(found);
}

WindowMemory::Parts WindowMemory::take(MPI_Win win) {
  Parts taken;
  std::lock_guard lock(mutex_);
  for (auto next = parts_.begin(); next != parts_.end();) {
    const auto part = next++;
    if (part->win == win) taken.splice(taken.end(), parts_, part);
  }
  return taken;
}

void WindowMemory::let_go(const Parts& parts) {
  for (const Part& part : parts) let_go(part);
}

void WindowMemory::give_back(Parts& parts) {
  std::lock_guard lock(mutex_);
  parts_.splice(parts_.end(), parts);
}

void WindowMemory::let_go(const Part& part) {
  if (part.lent != nullptr) {
    take_back(part.lent);
  } else if (job.active()) {
    offpath_memory_release(job.session(), part.base, static_cast<uint64_t>(part.bytes));
  }
}

}  // namespace offpath::mpi
